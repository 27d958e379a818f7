/** The graph of datasets, left to right; boxes list columns, a click follows one column. */
import { Background, Controls, Handle, MiniMap, Position, ReactFlow, useUpdateNodeInternals, type Edge, type Node, type NodeProps } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { memo, useEffect, useMemo, useState } from "react";
import type { Schemas } from "../api/client";
import { visible } from "../ui/format";
import { Loading, Problem, Verdict, asVerdict } from "../ui/parts";
import { svgOf } from "./export";
import type { Direction, Hop } from "./hops";
import { HEAD, LARGE, ROW, layout, type Positions } from "./layout";
import { columnKey, columnPath } from "./paths";

export type Box = Schemas["Box"];
export type Arrow = Schemas["Arrow"];

const SHOWN_COLUMNS = 8;

interface BoxData extends Record<string, unknown> {
  box: Box;
  columns: readonly string[];
  hidden: number;
  focus: boolean;
  dim: boolean;
  verdict: string | null;
  selected: ReadonlySet<string>;
  hop: Partial<Record<Direction, Hop>> | undefined;
  onColumn: (urn: string, column: string) => void;
  onOpen: (urn: string) => void;
  onHop?: (urn: string, direction: Direction, open: boolean) => void;
}

const DatasetBox = memo(function DatasetBox({ data }: NodeProps<Node<BoxData>>) {
  const { box, columns, hidden, focus, dim, verdict, selected, hop, onColumn, onOpen, onHop } = data;
  const measure = useUpdateNodeInternals();
  // Rows of followed columns have ends of edges.
  useEffect(() => { measure(box.urn); }, [measure, box.urn, columns, selected]);
  return (
    <div className={["node", focus ? "focus" : "", dim ? "dim" : "", verdict === null ? "" : asVerdict(verdict)].join(" ")}>
      <Handle type="target" position={Position.Left} />
      <Handle type="source" position={Position.Right} />
      {onHop === undefined ? null : (["upstream", "downstream"] as const).map((direction) => {
        const state = hop?.[direction];
        if (state === undefined) return null;
        const opens = state.hidden > 0;
        return <button key={direction} type="button" className={`hop ${direction} nodrag`} aria-label={`${opens ? `Show ${state.hidden} more` : "Hide what is"} ${direction} of ${box.name}`} title={`${opens ? "Show" : "Hide"} ${direction}`} onClick={() => { onHop(box.urn, direction, opens); }}>{opens ? `+${state.hidden}` : "−"}</button>;
      })}
      <header>
        <span className="clip" title={box.urn}>
          <button type="button" className="link" style={{ color: "inherit" }} onDoubleClick={() => { onOpen(box.urn); }} onClick={(event) => { if (event.detail === 0) onOpen(box.urn); }}><b><bdi>{visible(box.name)}</bdi></b></button>
          <div className="faint clip">{(box.owners ?? []).length === 0 ? box.platform : (box.owners ?? []).join(", ")}</div>
        </span>
        {verdict === null ? null : <Verdict of={verdict} label="" />}
      </header>
      {columns.length === 0 ? null : (
        <ul>
          {columns.map((column) => (
            <li key={column}>
              {selected.has(columnKey(box.urn, column)) ? <><Handle id={`in ${column}`} type="target" position={Position.Left} /><Handle id={`out ${column}`} type="source" position={Position.Right} /></> : null}
              <button type="button" className={selected.has(columnKey(box.urn, column)) ? "on" : ""} onClick={() => { onColumn(box.urn, column); }}><bdi className="clip">{column}</bdi></button>
            </li>
          ))}
          {hidden > 0 ? <li className="more">{hidden} more columns</li> : null}
        </ul>
      )}
    </div>
  );
});

const NODE_TYPES = { dataset: DatasetBox };

/** The columns of each box that lineage mentions. */
export function columnsOf(boxes: readonly Box[], arrows: readonly Arrow[]): Map<string, string[]> {
  const columns = new Map<string, Set<string>>(boxes.map((each) => [each.urn, new Set(each.columns)]));
  for (const arrow of arrows) {
    for (const mapping of arrow.columns ?? []) {
      columns.get(arrow.upstream)?.add(mapping.upstream);
      columns.get(arrow.downstream)?.add(mapping.downstream);
    }
    for (const use of arrow.uses ?? []) columns.get(arrow.upstream)?.add(use.upstream);
  }
  return new Map([...columns].map(([urn, names]) => [urn, [...names].sort()]));
}

export function Graph({ boxes, arrows, focus, column, verdicts, collapsed = false, hops, onColumn, onOpen, onArrow, onDraw, onHop }: {
  boxes: readonly Box[];
  arrows: readonly Arrow[];
  focus: string;
  column?: { urn: string; name: string };
  verdicts?: ReadonlyMap<string, string>;
  collapsed?: boolean;
  hops?: ReadonlyMap<string, Partial<Record<Direction, Hop>>>;
  onHop?: (urn: string, direction: Direction, open: boolean) => void;
  onColumn: (urn: string, column: string) => void;
  onOpen: (urn: string) => void;
  onArrow?: (arrow: Arrow) => void;
  onDraw?: (draw: () => string) => void;
}) {
  const [positions, setPositions] = useState<Positions>();
  const [failure, setFailure] = useState<unknown>();
  const columns = useMemo(() => columnsOf(boxes, arrows), [boxes, arrows]);
  const shown = useMemo(
    () => new Map([...columns].map(([urn, names]) => [urn, collapsed ? [] : names.slice(0, SHOWN_COLUMNS)])),
    [columns, collapsed],
  );
  useEffect(() => {
    let current = true;
    const known = new Set(boxes.map((each) => each.urn));
    layout(
      boxes.map((each) => ({ id: each.urn, height: HEAD + boxHeight(shown.get(each.urn)?.length ?? 0, columns.get(each.urn)?.length ?? 0, collapsed) })),
      arrows.filter((each) => known.has(each.upstream) && known.has(each.downstream)).map((each) => ({ source: each.upstream, target: each.downstream })),
    ).then((placed) => { if (current) setPositions(placed); }, (error: unknown) => { if (current) setFailure(error); });
    return () => { current = false; };
  }, [boxes, arrows, columns, shown, collapsed]);
  useEffect(() => {
    if (positions === undefined) return;
    onDraw?.(() => svgOf(
      boxes.map((each) => ({
        urn: each.urn, name: visible(each.name), detail: (each.owners ?? []).join(", ") || each.platform, columns: (shown.get(each.urn) ?? []).map(visible),
        height: HEAD + boxHeight(shown.get(each.urn)?.length ?? 0, columns.get(each.urn)?.length ?? 0, collapsed),
      })),
      arrows.map((each) => ({ source: each.upstream, target: each.downstream })),
      positions,
    ));
  }, [positions, boxes, arrows, shown, columns, collapsed, onDraw]);
  const path = useMemo(() => (column === undefined ? null : columnPath(arrows, column.urn, column.name)), [arrows, column]);
  const nodes = useMemo<Node<BoxData>[]>(() => {
    if (positions === undefined) return [];
    // Boxes that were just expanded have no position until the layout is computed.
    return boxes.filter((box) => positions.has(box.urn)).map((box) => ({
      id: box.urn,
      type: "dataset",
      position: positions.get(box.urn) ?? { x: 0, y: 0 },
      data: {
        box,
        columns: shown.get(box.urn) ?? [],
        hidden: collapsed ? 0 : Math.max(0, (columns.get(box.urn)?.length ?? 0) - SHOWN_COLUMNS),
        focus: box.urn === focus,
        dim: path !== null && !path.datasets.has(box.urn),
        verdict: verdicts?.get(box.urn) ?? null,
        selected: path?.columns ?? NONE,
        hop: hops?.get(box.urn),
        onColumn,
        onOpen,
        onHop,
      },
    }));
  }, [positions, boxes, shown, columns, collapsed, focus, path, verdicts, hops, onColumn, onOpen, onHop]);
  const edges = useMemo<Edge[]>(() => arrows.flatMap((arrow): Edge[] => {
    const { upstream: source, downstream: target } = arrow;
    const on = path !== null && path.datasets.has(source) && path.datasets.has(target);
    const breaks = verdicts?.get(target)?.toLowerCase() === "breaking" && (source === focus || verdicts.has(source));
    const edge: Edge = {
      id: `${source}\n${target}`,
      source,
      target,
      data: { arrow },
      className: breaks ? "breaking" : path === null ? "" : on ? "on" : "dim",
      style: (arrow.confidence ?? 1) < 1 ? { strokeDasharray: "5 4" } : undefined,
      ariaLabel: `${source} to ${target}`,
    };
    const rowOf = (urn: string, name: string) => (path?.columns.has(columnKey(urn, name)) === true && shown.get(urn)?.includes(name) === true);
    const rows = (arrow.columns ?? []).filter((each) => rowOf(source, each.upstream) && rowOf(target, each.downstream));
    return rows.length === 0 ? [edge] : rows.map((each) => ({
      ...edge, id: `${edge.id}\n${each.upstream}\n${each.downstream}`, sourceHandle: `out ${each.upstream}`, targetHandle: `in ${each.downstream}`,
    }));
  }), [arrows, path, verdicts, focus, shown]);
  // All datasets would be too small to read in a narrow window.
  const isNarrow = globalThis.innerWidth < 700 && boxes.length > 3;
  if (failure !== undefined) return <Problem error={failure} />;
  if (positions === undefined) return <Loading />;
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      fitView
      fitViewOptions={boxes.length > LARGE ? { nodes: [{ id: focus }], maxZoom: 0.7 } : isNarrow ? { nodes: [{ id: focus }], maxZoom: 0.85 } : { maxZoom: 1, minZoom: boxes.length > 60 ? 0.05 : 0.4, padding: 0.05 }}
      // Fewer boxes at once keep panning smooth.
      minZoom={boxes.length > LARGE ? 0.35 : 0.05}
      nodesDraggable={false}
      nodesConnectable={false}
      onlyRenderVisibleElements={boxes.length > 150}
      onEdgeClick={(_, edge) => { onArrow?.((edge.data as { arrow: Arrow }).arrow); }}
      proOptions={{ hideAttribution: true }}
    >
      <Background gap={24} size={1} color="var(--line)" />
      <Controls showInteractive={false} />
      {boxes.length > 25 && boxes.length <= LARGE ? <MiniMap pannable zoomable nodeColor="var(--line-strong)" maskColor="rgb(128 128 128 / 12%)" bgColor="var(--sunken)" /> : null}
    </ReactFlow>
  );
}

const NONE: ReadonlySet<string> = new Set();

function boxHeight(shown: number, all: number, collapsed: boolean): number {
  if (collapsed || shown === 0) return 0;
  return 4 + shown * ROW + (all > SHOWN_COLUMNS ? ROW : 0);
}
