/** The graph as an SVG or PNG file. */
import { HEAD, ROW, WIDTH, type Positions } from "./layout";

export interface DrawnBox {
  urn: string;
  name: string;
  detail: string;
  columns: readonly string[];
  height: number;
}

const PADDING = 24;
const FONT = "font-family=\"Inter, system-ui, sans-serif\"";

export function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** The graph as a standalone SVG document in light colours, for documents and slides. */
export function svgOf(boxes: readonly DrawnBox[], edges: readonly { source: string; target: string }[], positions: Positions): string {
  const placed = boxes.flatMap((box) => {
    const at = positions.get(box.urn);
    return at === undefined ? [] : [{ ...box, ...at }];
  });
  const byUrn = new Map(placed.map((each) => [each.urn, each]));
  const width = Math.max(0, ...placed.map((each) => each.x + WIDTH)) + 2 * PADDING;
  const height = Math.max(0, ...placed.map((each) => each.y + each.height)) + 2 * PADDING;
  const lines = edges.flatMap(({ source, target }) => {
    const from = byUrn.get(source);
    const to = byUrn.get(target);
    if (from === undefined || to === undefined) return [];
    const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + from.height / 2, to.x, to.y + to.height / 2];
    const middle = (x1 + x2) / 2;
    return [`<path d="M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}" fill="none" stroke="#9aa1a9" stroke-width="1.3"/>`];
  });
  const drawn = placed.map((box) => {
    const columns = box.columns.map((column, index) => `<text x="10" y="${HEAD + 16 + index * ROW}" font-size="11" font-family="ui-monospace, monospace" fill="#4b525b">${escapeXml(clip(column, 30))}</text>`);
    return `<g transform="translate(${box.x},${box.y})"><rect width="${WIDTH}" height="${box.height}" rx="6" fill="#fff" stroke="#c9c9c1"/><text x="10" y="18" font-size="12" font-weight="600" ${FONT} fill="#16191d">${escapeXml(clip(box.name, 30))}</text><text x="10" y="34" font-size="11" ${FONT} fill="#646b74">${escapeXml(clip(box.detail, 34))}</text>${columns.join("")}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${-PADDING} ${-PADDING} ${width} ${height}"><rect x="${-PADDING}" y="${-PADDING}" width="${width}" height="${height}" fill="#fff"/>${lines.join("")}${drawn.join("")}</svg>`;
}

function clip(text: string, most: number): string {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

export function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => { URL.revokeObjectURL(link.href); }, 10_000);
}

// Browsers refuse larger pictures.
const MAX_SIDE = 16_000;

/** An SVG document as a PNG of twice its size, or less if that would be too large. */
export async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await new Promise((resolve, reject) => {
      image.onload = resolve;
      image.onerror = () => { reject(new Error("The picture could not be drawn.")); };
      image.src = address;
    });
    const scale = Math.min(2, MAX_SIDE / Math.max(image.width, image.height, 1));
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(image.width * scale);
    canvas.height = Math.ceil(image.height * scale);
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => { canvas.toBlob(resolve, "image/png"); });
    if (blob === null) throw new Error("The picture is too large for a PNG. Export it as SVG.");
    return blob;
  } finally {
    URL.revokeObjectURL(address);
  }
}
