import type { Types } from "../../../common/types/types.ts";
import type { Deployment } from "../../isolate/deployment.ts";
import { withTypes } from "../../capabilities/types/edge/deployment-types.ts";
import type { WaitUntil } from "../../runtime.ts";
import { jsonText } from "../json-answer.ts";
import { encodedOnce } from "../encoded-once.ts";
import { shippedDocument, type Document } from "./document.ts";

/** `openapi.json` in bytes. */
export const encodedOpenApi = encodedOnce<Document>(jsonText);

let made: { types: Types; document: Document } | undefined;

/**
 * The API's description with the deployment's own types. Anybody may ask for it, so the types come from the
 * isolate's copy. Without one, it has the types that Leasehold ships.
 */
export async function describedApi(
  { directory, types }: Deployment,
  waitUntil: WaitUntil,
): Promise<Document> {
  if (types.current === undefined) await directory.view(waitUntil);
  const { current } = types;
  if (current === undefined) return shippedDocument;
  if (made?.types !== current) made = { types: current, document: withTypes(shippedDocument, current) };
  return made.document;
}
