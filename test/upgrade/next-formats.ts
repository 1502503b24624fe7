// What a made-up next version puts in place of the same exports of src/core/formats.ts.

export const FORMAT = 2;
export const FORMATS = [
  { release: "0.2.0", features: [] },
  { release: "0.3.0", features: ["a cell can be renamed"] },
];
