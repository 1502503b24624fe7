import { secured } from "./headers.ts";

/** Like `Response.json`, but the text ends with a line feed, so that answers to curl don't run together. */
export const jsonAnswer = (
  body: unknown,
  status: number,
  headers: Readonly<Record<string, string>>,
  requestId: string,
): Response =>
  new Response(`${JSON.stringify(body)}\n`, {
    status,
    headers: secured({ "content-type": "application/json", ...headers }, requestId),
  });
