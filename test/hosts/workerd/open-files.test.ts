/** The warning about the system's limit of open files. */
import { expect, test } from "vitest";
import { openFilesWarning } from "../../../src/hosts/workerd/open-files.ts";

const limits = (soft: string, hard: string): string =>
  "Limit                     Soft Limit           Hard Limit           Units     \n" +
  "Max processes             94212                94212                processes \n" +
  `Max open files            ${soft.padEnd(20)} ${hard.padEnd(20)} files     \n`;

test.each([
  ["1024", "1024", "only 1024 open files, and some 512 connections"],
  ["1024", "4095", "only 4095 open files"],
])("a soft limit of %s and a hard one of %s cause a warning", (soft, hard, sentence) => {
  expect(openFilesWarning(limits(soft, hard))).toContain(sentence);
});

test.each([
  // Node raises the soft limit to the hard one.
  ["1024", "4096"],
  ["1024", "unlimited"],
])("a soft limit of %s and a hard one of %s cause none", (soft, hard) => {
  expect(openFilesWarning(limits(soft, hard))).toBeUndefined();
});

test("a system that shows no limits causes none", () => {
  expect(openFilesWarning("")).toBeUndefined();
});
