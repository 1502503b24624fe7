import { typesOf } from "./document.ts";
import { gitlabTypes } from "./gitlab.ts";
import { Types } from "./types.ts";

const read = typesOf(gitlabTypes);
if (!read.ok) throw new Error(`the shipped types cannot be used: ${read.refusal.detail}`);

/** The types of a deployment that has declared none. */
export const shippedTypes = new Types(read.value);
