/** What a profile measured: null shares, distributions, ranges and frequent values. */
import type { ColumnProfile, Profile } from "../api/dataset";
import { formatCount, formatNumber, plural } from "../ui/format";
import { Panel, When } from "../ui/parts";
import { distribution } from "./distribution";

const WIDTH = 96;
const HEIGHT = 22;

/** The shape of a column's values; nothing if the profile has none. */
export function Distribution({ profile, name }: { profile: ColumnProfile | undefined; name: string }) {
  const bins = profile === undefined ? [] : distribution(profile);
  if (bins.length === 0) return null;
  return (
    <svg width={WIDTH} height={HEIGHT} className="chart" role="img" aria-label={`Distribution of ${name}`}>
      {bins.map((bin) => {
        const height = Math.max(1, bin.height * (HEIGHT - 1));
        return <rect key={`${bin.from} ${bin.to}`} x={bin.from * WIDTH} width={Math.max(1, (bin.to - bin.from) * WIDTH - 0.5)} y={HEIGHT - height} height={height} fill="var(--chart-1)" opacity={0.75}><title>{bin.label}</title></rect>;
      })}
      <line className="grid-line" x1={0} x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
    </svg>
  );
}

export function NullShare({ nulls, rows }: { nulls: number; rows: number }) {
  const share = rows === 0 ? 0 : nulls / rows;
  return (
    <span className="nowrap" title={`${formatNumber(nulls)} of ${formatNumber(rows)} rows`}>
      <span className="meter" aria-hidden="true"><i style={{ width: `${100 * share}%` }} /></span> {share > 0 && share < 0.01 ? "<1" : Math.round(100 * share)}%
    </span>
  );
}

export function ProfileTab({ profile }: { profile: Profile }) {
  const columns = Object.entries(profile.columns ?? {});
  return (
    <Panel
      title="Profile"
      aside={<>{formatCount(profile.rows)} rows of {plural(profile.files ?? 0, "file")}{profile.sampled === null || profile.sampled === undefined ? "" : `, a sample of ${Math.round(100 * profile.sampled)}%`}, measured <When at={profile.measured_at} /></>}
    >
      {(profile.unread ?? 0) > 0 ? <p className="small muted" style={{ padding: "8px 14px 0" }}>{plural(profile.unread ?? 0, "file")} could not be read.</p> : null}
      <div className="scroll" tabIndex={0}>
        <table className="measures">
          <thead><tr><th>Column</th><th>Null</th><th className="num">Distinct</th><th>Distribution</th><th>Lowest</th><th>Highest</th><th>Mean</th><th>Most frequent</th></tr></thead>
          <tbody>
            {columns.map(([name, each]) => (
              <tr key={name}>
                <td><code className="name"><bdi>{name}</bdi></code>{(each.misfits ?? 0) > 0 ? <div className="small muted">{plural(each.misfits ?? 0, "value")} of another type</div> : null}</td>
                <td className="small"><NullShare nulls={each.nulls ?? 0} rows={profile.rows} /></td>
                <td className="num">{each.distinct === null || each.distinct === undefined ? "" : formatCount(each.distinct)}</td>
                <td><Distribution profile={each} name={name} /></td>
                <td className="small mono"><Value text={each.minimum} /></td>
                <td className="small mono"><Value text={each.maximum} /></td>
                <td className="small mono"><Value text={each.mean} /></td>
                <td className="small muted"><bdi>{(each.top ?? []).slice(0, 3).map((one) => one.value).join(", ")}</bdi></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Value({ text }: { text: string | null | undefined }) {
  return <bdi className="cut" title={text ?? ""}>{text ?? ""}</bdi>;
}
