/** Small charts: plain SVG, drawn with visx. */
import { Bar, LinePath, AreaClosed } from "@visx/shape";
import { scaleLinear } from "@visx/scale";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";

export function Sparkline({ values, width = 120, height = 28, label }: { values: readonly number[]; width?: number; height?: number; label: string }) {
  if (values.length < 2) return null;
  const x = scaleLinear<number>({ domain: [0, values.length - 1], range: [1, width - 1] });
  const y = scaleLinear<number>({ domain: [0, Math.max(...values, 1e-9)], range: [height - 1, 2] });
  const points = values.map((value, index) => ({ x: x(index), y: y(value) }));
  return (
    <svg width={width} height={height} role="img" aria-label={label} className="spark">
      <AreaClosed data={points} x={(each) => each.x} y={(each) => each.y} yScale={y} fill="var(--chart-1)" opacity={0.12} />
      <LinePath data={points} x={(each) => each.x} y={(each) => each.y} stroke="var(--chart-1)" strokeWidth={1.5} />
    </svg>
  );
}

/** Draws a chart as wide as its panel, so that texts keep their size. */
export function Sized({ children }: { children: (width: number) => ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => { setWidth(element.clientWidth); });
    observer.observe(element);
    return () => { observer.disconnect(); };
  }, []);
  return <div ref={box} className="chart-box">{width > 0 ? children(width) : null}</div>;
}

export interface BarPoint {
  label: string;
  value: number;
  title: string;
  soft?: boolean;
}

/** Bars over time: a baseline, three grid lines, labels at the ends. */
export function Bars(props: { points: readonly BarPoint[]; height?: number; format: (value: number) => string; label: string }) {
  return props.points.length === 0 ? null : <Sized>{(width) => <BarsOf {...props} width={width} />}</Sized>;
}

function BarsOf({ width, points, height = 120, format, label }: { width: number; points: readonly BarPoint[]; height?: number; format: (value: number) => string; label: string }) {
  const left = 52;
  const bottom = 18;
  const most = Math.max(...points.map((each) => each.value), 1e-9);
  const y = scaleLinear<number>({ domain: [0, most], range: [height - bottom, 8], nice: 3 });
  const step = (width - left) / points.length;
  const wide = Math.max(1, Math.min(46, step * 0.75));
  return (
    <svg width={width} height={height} className="chart" role="img" aria-label={label}>
      {y.ticks(3).map((tick) => (
        <g key={tick}>
          <line className="grid-line" x1={left} x2={width} y1={y(tick)} y2={y(tick)} />
          <text x={left - 6} y={y(tick) + 3.5} textAnchor="end">{format(tick)}</text>
        </g>
      ))}
      {points.map((each, index) => (
        <Bar
          key={each.label}
          x={left + index * step + (step - wide) / 2}
          width={wide}
          y={y(each.value)}
          height={Math.max(0, height - bottom - y(each.value))}
          fill={each.soft === true ? "var(--chart-3)" : "var(--chart-1)"}
          rx={1.5}
        >
          <title>{each.title}</title>
        </Bar>
      ))}
      {points.map((each, index) =>
        points.length <= 12 || index === 0 || index === points.length - 1 ? (
          <text key={each.label} x={points.length > 12 ? (index === 0 ? left : width) : left + (index + 0.5) * step} y={height - 4} textAnchor={points.length > 12 && index === points.length - 1 ? "end" : points.length > 12 ? "start" : "middle"}>
            {each.label}
          </text>
        ) : null,
      )}
    </svg>
  );
}
