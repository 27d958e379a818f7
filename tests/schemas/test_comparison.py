"""What is told of a change inside a column, with the words on its members."""

from lumos.model.change import DescriptionChanged, FieldAdded, FieldRemoved, TagsChanged
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import DATE, INT64, STRING, Array, DataType, Member, Struct
from lumos.schemas.apply import apply
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify


def column(type: DataType, *notes: NestedField, native_type: str | None = None) -> Schema:
    return Schema(fields=(Field(name="a", type=type, nested=notes, native_type=native_type),))


X = Member("x", INT64)
Y = Member("y", Struct([Member("z", DATE, nullable=False)]), nullable=False)


def test_a_member_that_comes_or_goes_takes_its_words_along() -> None:
    words = (
        NestedField(path="a[].y", description="why", default="{}", tags=("pii",), field_id=4),
        NestedField(path="a[].y.z", description="zed"),
    )
    without, with_member = column(Array(Struct([X]))), column(Array(Struct([X, Y])), *words)
    member = Field(
        name="y",
        type=Y.type,
        nullable=False,
        description="why",
        default="{}",
        tags=("pii",),
        field_id=4,
        nested=words[1:],
    )
    assert compare(without, with_member) == (FieldAdded(path="a[].y", after=member, position=1),)
    assert compare(with_member, without) == (FieldRemoved(path="a[].y", before=member, position=1),)
    assert apply(compare(without, with_member), without) == with_member
    assert apply(compare(with_member, without), with_member) == without


def test_a_required_member_with_a_default_breaks_no_storage() -> None:
    after = column(Struct([X, Y]), NestedField(path="a.y", default="{}"))
    (finding,) = classify(compare(column(Struct([X])), after))
    assert (finding.rule, finding.storage.value) == ("field-added", "compatible")


def test_words_inside_a_column_are_changes_at_their_own_path() -> None:
    before = column(Array(STRING), NestedField(path="a[]", description="old", tags=("b", "a")))
    after = column(Array(STRING), NestedField(path="a[]", description="new", tags=("a",)))
    assert compare(before, after) == (
        DescriptionChanged(path="a[]", before="old", after="new"),
        TagsChanged(path="a[]", before=("b", "a"), after=("a",)),
    )


def test_native_types_field_ids_and_the_order_of_tags_are_no_changes() -> None:
    before = Schema(fields=(Field(name="a", type=INT64, tags=("x", "y"), field_id=1),))
    after = Schema(fields=(Field(name="a", type=INT64, tags=("y", "x"), native_type="int8"),))
    assert compare(before, after) == ()


def test_a_native_type_does_not_outlive_its_type() -> None:
    before, after = column(INT64, native_type="int8"), column(STRING, native_type="text")
    assert apply(compare(before, after), before) == column(STRING)
    assert apply((), before) == before
