/** Tests of what is done before and after each call of an object. */
import { expect, test } from "vitest";
import type { Envelope } from "../../../src/coordinator/kernel/messages.ts";
import { ok } from "../../../src/coordinator/kernel/refusal.ts";
import { intercept, type Interceptor } from "../../../src/coordinator/objects/interceptor.ts";

const call = {
  kind: "shard",
  part: "shard-0",
  method: "ping",
  level: "peer",
  message: { version: 1, placement: "here" },
} as const;

/** Interceptors that add their names to the message, and note what they are called with. */
function named(...names: string[]): { interceptors: Interceptor[]; noted: unknown[] } {
  const noted: unknown[] = [];
  const interceptors = names.map((name): Interceptor => ({
    before: (_, message) => ({ ...message, traces: [...(message.traces ?? []), name] }),
    after: (_, answer, sent) => void noted.push([name, answer, sent.traces]),
  }));
  return { interceptors, noted };
}

test("interceptors run in their order before a call, and in reverse order after it", async () => {
  const { interceptors, noted } = named("a", "b");
  const ping = async ({ traces }: Envelope) => ok(traces);
  expect(await intercept(interceptors, call, { ping })).toEqual(ok(["a", "b"]));
  expect(noted).toEqual(["b", "a"].map((name) => [name, ok(["a", "b"]), ["a", "b"]]));
});

test("interceptors learn that a call has failed, and its caller gets the error", async () => {
  const { interceptors, noted } = named("a", "b");
  const ping = () => Promise.reject(new Error("the shard is down"));
  await expect(intercept(interceptors, call, { ping })).rejects.toThrow("the shard is down");
  expect(noted).toEqual(["b", "a"].map((name) => [name, undefined, ["a", "b"]]));
});

test("a call without interceptors sends the message as it is", async () => {
  const ping = async (message: Envelope) => ok(message);
  expect(await intercept([], call, { ping })).toEqual(ok(call.message));
});
