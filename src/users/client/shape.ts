/** The least that an answer must hold: the kind of each field that is always present. */
export type Shape =
  | "string"
  | "number"
  | "boolean"
  | "any"
  | readonly [Shape]
  | { readonly [field: string]: Shape };

/** Throws a `TypeError` that names the path where `json` differs from `shape`. Extra fields are allowed. */
export function checkShape(json: unknown, shape: Shape, path = "the answer"): void {
  if (shape === "any") return;
  if (typeof shape === "string") {
    if (typeof json !== shape) throw new TypeError(`${path} is not a ${shape}`);
  } else if (isList(shape)) {
    if (!Array.isArray(json)) throw new TypeError(`${path} is not a list`);
    json.forEach((each, index) => checkShape(each, shape[0], `${path}[${index}]`));
  } else {
    if (typeof json !== "object" || json === null) throw new TypeError(`${path} is not an object`);
    for (const [field, each] of Object.entries(shape))
      checkShape((json as Record<string, unknown>)[field], each, `${path}.${field}`);
  }
}

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape);
