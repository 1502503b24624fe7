import { expect, test } from "vitest";
import { readOptions } from "../../../examples/cell/launcher/options.ts";
import { normalTiming, quickTiming } from "../../../examples/cell/launcher/timing.ts";

test("options are read, and have defaults", () => {
  expect(readOptions([])).toEqual({
    port: 4_000,
    folder: undefined,
    types: undefined,
    timing: normalTiming,
    help: false,
  });
  expect(readOptions(["--port", "4100", "--folder", "state", "--types", "types.json", "--quick"])).toEqual({
    port: 4_100,
    folder: "state",
    types: "types.json",
    timing: quickTiming,
    help: false,
  });
  expect(readOptions(["--help"]).help).toBe(true);
});

test.each([
  [["--port", "0"], "--port must be a whole number from 1 to 65000"],
  [["--port", "eighty"], "--port must be a whole number from 1 to 65000"],
  [["--folder", ""], "--folder must be the path of a folder"],
  [["--types", ""], "--types must be the path of a file"],
  [["--nothing"], "Unknown option '--nothing'"],
])("%j is refused", (args, message) => {
  expect(() => readOptions(args)).toThrow(message);
});
