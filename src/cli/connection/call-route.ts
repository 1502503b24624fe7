import { errorOf } from "../../users/client/errors.ts";
import { readProblem } from "../../users/client/problem.ts";
import type { Context } from "../framework/context.ts";
import type { RawRequest } from "./send.ts";

/** Calls a route that the client leaves out, without retries. Throws its refusal as an error. */
export async function callRoute<T>(context: Context, request: RawRequest): Promise<T> {
  const { status, text, header } = await context.send(request);
  if (status < 200 || status > 202) {
    const problem = readProblem(status, { get: header }, text);
    throw errorOf(request.method === "GET" ? { ...problem, outcomeKnown: true } : problem);
  }
  return JSON.parse(text) as T;
}
