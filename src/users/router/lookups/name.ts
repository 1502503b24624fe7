import type { InvalidName, Name } from "./routes.ts";

const MAX_TYPE_LENGTH = 256;
/** No name that a coordinator accepts is longer. */
const MAX_VALUE_BYTES = 1_024;
const encoder = new TextEncoder();

/** Why no name can be like this, or undefined. The coordinator checks all the rest. */
export function faultOf({ type, value }: Name): InvalidName | undefined {
  if (type === "" || type.length > MAX_TYPE_LENGTH || !type.isWellFormed())
    return invalid("bucket_type", "`type` must be the name of a bucket type");
  if (!value.isWellFormed()) return invalid("value", "`value` must be well-formed Unicode");
  if (value.length > MAX_VALUE_BYTES || encoder.encode(value).length > MAX_VALUE_BYTES)
    return invalid("value", `\`value\` must be at most ${MAX_VALUE_BYTES} bytes of UTF-8`);
  return undefined;
}

const invalid = (field: string, detail: string): InvalidName => ({ kind: "invalid", field, detail });
