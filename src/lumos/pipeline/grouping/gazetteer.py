"""Words that stand for values wherever they are met: places, people, months, currencies."""

from typing import Final


def words_in(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_SPLITS: Final = words_in(
    "train training test testing valid validation val dev eval evaluation holdout"
)
# In English, German, Spanish, French, Italian, Portuguese and Dutch.
_WEEKDAYS: Final = words_in(
    "monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag "
    "lunes martes miércoles miercoles jueves viernes sábado sabado domingo "
    "lundi mardi mercredi jeudi vendredi samedi dimanche"
)
_MONTHS: Final = words_in(
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "januar jänner februar märz maerz mai juni juli oktober dezember "
    "enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre "
    "diciembre janvier février fevrier mars avril juin juillet août aout septembre octobre "
    "novembre décembre decembre gennaio febbraio aprile maggio giugno luglio settembre ottobre "
    "dicembre janeiro fevereiro março maio junho julho setembro outubro novembro dezembro "
    "januari februari maart augustus"
)
# ISO 3166 codes of two letters; those that are common words of English names are left out.
_COUNTRY_CODES: Final = words_in(
    "ad ae af ag ai al am ao ar at au az ba bb bd be bf bg bh bi bj bn bo br bs bt bw bz ca cd cf "
    "cg ch ci cl cm cn co cr cu cv cy cz de dj dk dm dz ec ee eg er es et fi fj fm fr ga gb gd ge "
    "gh gm gn gq gr gt gw gy hk hn hr ht hu ie il in iq ir it jm jo jp ke kg kh ki km kn kp kr kw "
    "kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mr mt mu mv mw mx my mz na "
    "ne ng ni nl no np nr nz om pa pe pg ph pk pl pt pw py qa ro rs ru rw sa sb sc sd se sg si sk "
    "sl sm sn sr ss st sv sy sz td tg th tj tl tm tn tr tt tv tw tz ua ug uk us uy uz va vc ve vn "
    "vu ws ye za zm zw en ja ko zh hi eu"
)
_STATES: Final = words_in(
    "al ak az ar ca co ct de fl ga hi ia il in ks ky la ma md me mi mn mo ms mt nc nd ne nh nj nm "
    "nv ny oh ok or pa ri sc sd tn tx ut va vt wa wi wv wy dc pr"
)
_PLACE_NAMES: Final = frozenset(
    name.replace("_", " ")
    for name in words_in(
        "africa america americas asia europe oceania antarctica north_america south_america "
        "latin_america emea apac latam amer anz dach benelux nordics mena eu eea global "
        "north south east west central northeast northwest southeast southwest "
        "afghanistan albania algeria angola argentina armenia australia austria azerbaijan "
        "bahrain bangladesh belarus belgium bolivia bosnia botswana brazil bulgaria cambodia "
        "cameroon canada chad chile china colombia costa_rica croatia cuba cyprus czechia "
        "czech_republic denmark ecuador egypt estonia ethiopia finland france georgia germany "
        "ghana greece guatemala honduras hong_kong hungary iceland india indonesia iran iraq "
        "ireland israel italy jamaica japan jordan kazakhstan kenya korea south_korea north_korea "
        "kuwait latvia lebanon libya lithuania luxembourg malaysia mali malta mexico moldova "
        "mongolia montenegro morocco mozambique myanmar namibia nepal netherlands new_zealand "
        "nicaragua niger nigeria norway oman pakistan panama paraguay peru philippines poland "
        "portugal qatar romania russia rwanda saudi_arabia senegal serbia singapore slovakia "
        "slovenia somalia south_africa spain sri_lanka sudan sweden switzerland syria taiwan "
        "tanzania thailand tunisia turkey uganda ukraine united_arab_emirates uae united_kingdom "
        "great_britain england scotland wales united_states usa uruguay uzbekistan venezuela "
        "vietnam yemen zambia zimbabwe "
        "alabama alaska arizona arkansas california colorado connecticut delaware florida hawaii "
        "idaho illinois indiana iowa kansas kentucky louisiana maine maryland massachusetts "
        "michigan minnesota mississippi missouri montana nebraska nevada new_hampshire new_jersey "
        "new_mexico new_york north_carolina north_dakota ohio oklahoma oregon pennsylvania "
        "rhode_island south_carolina south_dakota tennessee texas utah vermont virginia "
        "washington west_virginia wisconsin wyoming "
        "bavaria bayern berlin brandenburg bremen hamburg hessen saxony ontario quebec alberta "
        "manitoba queensland victoria tasmania new_south_wales "
        "amsterdam antwerp athens atlanta auckland austin bangkok barcelona basel beijing "
        "birmingham bogota boston bristol brussels bucharest budapest buenos_aires cairo "
        "cape_town chicago cologne copenhagen dallas delhi denver detroit dubai dublin dusseldorf "
        "edinburgh frankfurt geneva glasgow hamburg helsinki houston istanbul jakarta "
        "johannesburg karachi kyiv lagos leeds leipzig lima lisbon liverpool london los_angeles "
        "lyon madrid manchester manila marseille melbourne miami milan minneapolis montreal "
        "moscow mumbai munich nairobi naples nyc osaka oslo paris philadelphia phoenix portland "
        "porto prague riga rome rotterdam san_diego san_francisco santiago sao_paulo seattle "
        "seoul seville shanghai shenzhen sofia stockholm stuttgart sydney tallinn tehran tokyo "
        "toronto turin valencia vancouver venice vienna vilnius warsaw wellington zagreb zurich"
    )
)
_CURRENCIES: Final = words_in(
    "usd eur gbp jpy chf cad aud nzd cny inr brl mxn sek nok dkk pln czk huf zar krw sgd hkd try "
    "rub btc eth"
)
# Given names that mean nothing else.
_PEOPLE: Final = words_in(
    "ahmed alejandro alex ali alice anders andrea andreas andrew anja anna anne annika antonio "
    "arjun barbara beatriz benjamin bernd birgit bob bruno camila carla carlos carmen carol "
    "caroline catherine chen chiara chloe christian christina claire clara claudia daniel daniela "
    "david deepak diana diego dmitri edward elena elisabeth elizabeth emily emma erik eva fatima "
    "felix fernando finn florian francesca francisco franziska gabriel giovanni giulia greta "
    "gustav hannah hans heike heinz helen henrik hiroshi hugo ibrahim igor ines ingrid isabel "
    "ivan jakob james javier jens jessica joao johanna johannes john jonas jorge jose josef juan "
    "juliane julien jürgen kamil karin karl karolina katarina katrin kenji klaus krzysztof lars "
    "laura lena leon linda lisa luca lucas luis luisa lukas magdalena manuel marcel marco "
    "margaret maria marie mario marta martin matteo matthias mehmet michael michelle miguel "
    "mikael mohammed monika moritz nadia natalia nathan nicolas nicole nikolai nina noah oleg "
    "olga olivia omar pablo patricia patrick paula pedro peter petra philipp piotr priya rachel "
    "raj ralf rebecca ricardo richard robert roberto sabine samuel sandra sarah sebastian sergey "
    "simon sofie sophia sophie stefan stefanie stephen susan susanne svetlana takeshi tatiana "
    "theresa thomas tim tobias tom tomasz ulrike uwe vera veronika victor vladimir walter wei "
    "werner wolfgang xavier yuki yusuf zoe"
)
KIND_OF: Final[dict[str, str]] = {
    **dict.fromkeys(_PEOPLE, "person"),
    **dict.fromkeys(_CURRENCIES, "currency"),
    **dict.fromkeys(_COUNTRY_CODES | _STATES | _PLACE_NAMES, "place"),
    **dict.fromkeys(_SPLITS, "split"),
    **dict.fromkeys(_WEEKDAYS, "weekday"),
    **dict.fromkeys(("spring", "summer", "autumn", "winter"), "season"),
    **dict.fromkeys(_MONTHS, "month"),
}
# Of so many words a name is made at most.
LONGEST_NAME: Final = 3
