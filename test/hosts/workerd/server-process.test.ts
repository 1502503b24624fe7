import { expect, test } from "vitest";
import { LogOutput } from "../../../src/hosts/workerd/server-process.ts";

test("lines without room are dropped, and their number is logged once there is room", () => {
  const sent: string[] = [];
  let room = 2;
  const output = new LogOutput((line) => {
    if (room === 0) return false;
    room -= 1;
    sent.push(line);
    return true;
  });
  for (const line of ["1", "2", "3", "4"]) output.write(line);
  output.reportDropped();
  expect(sent).toEqual(["1\n", "2\n"]);
  room = 1;
  output.write("5");
  expect(sent.slice(2)).toEqual(['{"event":"log_lines_dropped","lines":2}\n']);
  room = 2;
  output.reportDropped();
  output.reportDropped();
  expect(sent.slice(3)).toEqual(['{"event":"log_lines_dropped","lines":1}\n']);
});
