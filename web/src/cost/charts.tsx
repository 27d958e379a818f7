/** Treemap and Sankey diagram of costs. */
import { Treemap, hierarchy, treemapSquarify } from "@visx/hierarchy";
import { Sankey } from "@visx/sankey";
import { Sized } from "../ui/charts";
import { amount } from "../ui/format";

export interface CostItem {
  urn: string;
  name: string;
  group: string;
  cost: number;
}

/** The names of the groups of datasets without an owner, domain and so on are in parentheses. */
const UNNAMED = /^\(no .*\)$/;
export const CHART_COLOURS = Array.from({ length: 8 }, (_, index) => `var(--chart-${index + 1})`);

export function colourOf(group: string, groups: readonly string[]): string {
  if (UNNAMED.test(group)) return "var(--ink-3)";
  return CHART_COLOURS[Math.max(0, groups.indexOf(group)) % CHART_COLOURS.length] ?? "var(--chart-5)";
}

/** Text on a colour is white or black, whichever can be read. */
function shadeOf(group: string, groups: readonly string[]): string {
  return UNNAMED.test(group) ? "shade-0" : `shade-${(Math.max(0, groups.indexOf(group)) % CHART_COLOURS.length) + 1}`;
}

interface Leaf {
  name: string;
  urn?: string;
  group?: string;
  value?: number;
  children?: Leaf[];
}


export function CostTreemap(props: { items: readonly CostItem[]; groups: readonly string[]; format: (value: number) => string; onOpen: (urn: string) => void }) {
  return <Sized>{(width) => <TreemapOf {...props} width={width} />}</Sized>;
}

// Widths of letters in wide fonts: text that does not fit is cut.
const NAME_LETTER = 7.7;
const COST_LETTER = 7;

function TreemapOf({ width, items, groups, format, onOpen }: { width: number; items: readonly CostItem[]; groups: readonly string[]; format: (value: number) => string; onOpen: (urn: string) => void }) {
  const height = 340;
  const root = hierarchy<Leaf>({
    name: "all",
    children: groups.map((group) => ({ name: group, children: items.filter((each) => each.group === group && each.cost > 0).map((each) => ({ name: each.name, urn: each.urn, group, value: each.cost })) })),
  }).sum((each) => each.value ?? 0).sort((one, two) => (two.value ?? 0) - (one.value ?? 0));
  return (
    <svg width={width} height={height} className="chart" role="img" aria-label="Cost of datasets by group">
      <Treemap<Leaf> root={root} size={[width, height]} tile={treemapSquarify} paddingInner={2} round>
        {(map) => (
          <g>
            {map.leaves().map((leaf) => {
              const wide = leaf.x1 - leaf.x0;
              const tall = leaf.y1 - leaf.y0;
              const { name, urn, group } = leaf.data;
              const fits = Math.floor((wide - 14) / NAME_LETTER);
              const cost = format(leaf.value ?? 0);
              return (
                <g key={urn ?? name} className={`cell ${shadeOf(group ?? "", groups)}`} transform={`translate(${leaf.x0},${leaf.y0})`} onClick={() => { if (urn !== undefined) onOpen(urn); }} style={{ cursor: "pointer" }}>
                  <rect width={Math.max(0, wide)} height={Math.max(0, tall)} rx={2} fill={colourOf(group ?? "", groups)} />
                  {fits >= 4 && tall > 20 ? <text className="cell-name" x={7} y={16}>{name.length > fits ? `${name.slice(0, fits - 1)}…` : name}</text> : null}
                  {fits >= 4 && tall > 36 && cost.length * COST_LETTER < wide - 14 ? <text className="cell-cost" x={7} y={31}>{cost}</text> : null}
                  <title>{`${name}: ${cost} (${group ?? ""})`}</title>
                </g>
              );
            })}
          </g>
        )}
      </Treemap>
    </svg>
  );
}

interface SankeyNode { name: string; colour: string }
interface SankeyLink { source: number; target: number; value: number }

/** Flows from where money is spent (a team, domain, platform or tag) to what it is spent on (a type). */
export function sankeyOf(rows: readonly { group: string; by_type: Record<string, unknown>; own: unknown }[], groups: readonly string[]): { nodes: SankeyNode[]; links: SankeyLink[] } {
  const flows = new Map<string, number>();
  for (const row of rows) {
    const types = Object.entries(row.by_type);
    const sum = types.reduce((all, [, value]) => all + amount(value), 0);
    // Types are those of the total; own cost is split in the same proportion.
    for (const [type, value] of types) {
      if (sum <= 0) continue;
      const key = `${row.group}\n${type}`;
      flows.set(key, (flows.get(key) ?? 0) + (amount(row.own) * amount(value)) / sum);
    }
  }
  const sources = [...new Set([...flows.keys()].map((each) => each.split("\n")[0] ?? ""))];
  const types = [...new Set([...flows.keys()].map((each) => each.split("\n")[1] ?? ""))];
  const nodes = [...sources.map((name) => ({ name, colour: colourOf(name, groups) })), ...types.map((name) => ({ name, colour: "var(--ink-3)" }))];
  const links = [...flows].filter(([, value]) => value > 0).map(([key, value]) => {
    const [source = "", type = ""] = key.split("\n");
    return { source: sources.indexOf(source), target: sources.length + types.indexOf(type), value };
  });
  return { nodes, links };
}

export function CostSankey(props: { nodes: readonly SankeyNode[]; links: readonly SankeyLink[]; format: (value: number) => string }) {
  return props.links.length === 0 ? null : <Sized>{(width) => <SankeyOf {...props} width={width} />}</Sized>;
}

function SankeyOf({ width, nodes, links, format }: { width: number; nodes: readonly SankeyNode[]; links: readonly SankeyLink[]; format: (value: number) => string }) {
  const height = Math.max(240, 34 * nodes.length);
  const side = width < 520 ? 118 : 160;
  return (
    <svg width={width} height={height} className="chart" role="img" aria-label="Cost by group and type of cost">
      <Sankey<SankeyNode, SankeyLink> root={{ nodes: nodes.map((each) => ({ ...each })), links: links.map((each) => ({ ...each })) }} size={[Math.max(40, width - 2 * side), height - 24]} nodeWidth={9} nodePadding={14}>
        {({ graph, createPath }) => (
          <g transform={`translate(${side},12)`}>
            {graph.links.map((link, index) => (
              <path key={index} d={createPath(link) ?? ""} fill="none" stroke={(link.source as unknown as SankeyNode).colour} strokeOpacity={0.32} strokeWidth={Math.max(1, link.width ?? 1)}>
                <title>{`${(link.source as unknown as SankeyNode).name} → ${(link.target as unknown as SankeyNode).name}: ${format(link.value)}`}</title>
              </path>
            ))}
            {graph.nodes.map((node) => {
              const isLeft = (node.x0 ?? 0) < 10;
              const middle = ((node.y0 ?? 0) + (node.y1 ?? 0)) / 2;
              return (
                <g key={`${node.name}${String(isLeft)}`}>
                  <rect x={node.x0} y={node.y0} width={(node.x1 ?? 0) - (node.x0 ?? 0)} height={Math.max(1, (node.y1 ?? 0) - (node.y0 ?? 0))} fill={node.colour} rx={1.5} />
                  <text x={isLeft ? (node.x0 ?? 0) - 7 : (node.x1 ?? 0) + 7} y={middle + 3.5} textAnchor={isLeft ? "end" : "start"}>{node.name.length > 16 ? `${node.name.slice(0, 15)}…` : node.name} {format(node.value ?? 0)}</text>
                </g>
              );
            })}
          </g>
        )}
      </Sankey>
    </svg>
  );
}
