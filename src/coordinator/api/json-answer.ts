import { secured } from "./headers.ts";
import type { HttpAnswer } from "./incoming.ts";

export const JSON_TYPE = "application/json";

/** Ends with a line feed, so that answers to curl don't run together. */
export const jsonText = (body: unknown): string => `${JSON.stringify(body)}\n`;

export const jsonAnswer = (
  body: unknown,
  status: number,
  headers: Readonly<Record<string, string>>,
  requestId: string,
): HttpAnswer => ({
  status,
  headers: secured({ "content-type": JSON_TYPE, ...headers }, requestId),
  body: jsonText(body),
});
