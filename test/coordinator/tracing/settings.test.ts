import { expect, test } from "vitest";
import { readTracing } from "../../../src/coordinator/tracing/settings.ts";

const ENDPOINT = "https://otel.example.com/otlp/";

test("nothing is traced without a collector", () => {
  expect(readTracing({})).toBeUndefined();
  expect(readTracing({ LEASEHOLD_OTLP_ENDPOINT: "", LEASEHOLD_TRACE_SHARE: "1" })).toBeUndefined();
});

test("the variables name the collector, its headers and the share", () => {
  expect(readTracing({ LEASEHOLD_OTLP_ENDPOINT: ENDPOINT })).toEqual({
    url: "https://otel.example.com/otlp/v1/traces",
    headers: {},
    share: 0.01,
  });
  const more = {
    LEASEHOLD_OTLP_HEADERS: "Authorization=Bearer%20a%3Db, x-team=1",
    LEASEHOLD_TRACE_SHARE: "0",
  };
  expect(readTracing({ LEASEHOLD_OTLP_ENDPOINT: "http://127.0.0.1:4318", ...more })).toEqual({
    url: "http://127.0.0.1:4318/v1/traces",
    headers: { authorization: "Bearer a=b", "x-team": "1" },
    share: 0,
  });
});

test.each([
  ["LEASEHOLD_OTLP_ENDPOINT", "otel.example.com"],
  ["LEASEHOLD_OTLP_ENDPOINT", "grpc://otel.example.com"],
  ["LEASEHOLD_OTLP_ENDPOINT", "https://otel.example.com/?token=hidden"],
  ["LEASEHOLD_OTLP_ENDPOINT", "https://user:hidden@otel.example.com"],
  ["LEASEHOLD_OTLP_HEADERS", "hidden"],
  ["LEASEHOLD_OTLP_HEADERS", "=hidden"],
  ["LEASEHOLD_OTLP_HEADERS", "two words=hidden"],
  ["LEASEHOLD_OTLP_HEADERS", "x=hidden%0Aline"],
  ["LEASEHOLD_OTLP_HEADERS", "x=hidden%"],
  ["LEASEHOLD_TRACE_SHARE", "2"],
  ["LEASEHOLD_TRACE_SHARE", "-1"],
  ["LEASEHOLD_TRACE_SHARE", "all"],
])("a wrong %s is refused, by name and without its value: %s", (name, value) => {
  const variables = { LEASEHOLD_OTLP_ENDPOINT: ENDPOINT, [name]: value };
  expect(() => readTracing(variables)).toThrow(name);
  expect(() => readTracing(variables)).not.toThrow("hidden");
});
