/** The data files of a site: scripts that pass one JSON text each, so that they load from disk too. */

export type Load = <T>(name: string) => Promise<T>;

/** Loads the files of a folder with script elements; each is loaded once. */
export function scriptLoader(folder: string): Load {
  const texts = new Map<string, string>();
  const loads = new Map<string, Promise<unknown>>();
  Object.assign(globalThis, { lumosData: (name: string, text: string) => { texts.set(name, text); } });
  const read = (name: string) => new Promise<unknown>((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${folder}/${name}.js`;
    script.onload = () => {
      const text = texts.get(name);
      texts.delete(name);
      script.remove();
      if (text === undefined) reject(new Error(`The file ${script.src} of this site is damaged.`));
      else resolve(JSON.parse(text));
    };
    script.onerror = () => {
      loads.delete(name);
      script.remove();
      reject(new Error(`The file ${script.src} of this site is missing.`));
    };
    document.head.append(script);
  });
  return <T>(name: string) => {
    let load = loads.get(name);
    if (load === undefined) {
      load = read(name);
      loads.set(name, load);
    }
    return load as Promise<T>;
  };
}

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

/** The number of the file that has a dataset: CRC-32 of its URN, as site/writer.py computes it. */
export function fileOf(urn: string, count: number): number {
  let crc = 0xffffffff;
  for (const byte of new TextEncoder().encode(urn)) crc = (TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return ((crc ^ 0xffffffff) >>> 0) % count;
}
