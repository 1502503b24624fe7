/** The samples of the metrics, by name and labels as they are written. */
export type Samples = ReadonlyMap<string, number>;

/** Reads the samples of the metrics that the pages show: those with at most two labels. */
export function samplesIn(text: string): Samples {
  const lines = text.matchAll(
    /^([a-z_]+(?:\{[a-z]+="[\w .+-]*"(?:,[a-z]+="[\w .+-]*")?\})?) (-?[\d.e+-]+)$/gm,
  );
  return new Map([...lines].map(([, name = "", value]) => [name, Number(value)]));
}
