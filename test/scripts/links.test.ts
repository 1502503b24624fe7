/** Links between the pages of the repository. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

/** A page without its examples. */
const textOf = (page: string): string =>
  readFileSync(join(root, page), "utf8").replaceAll(/^ *```.*?^ *```/gms, "");

const anchorsOf = (page: string): string[] =>
  Array.from(textOf(page).matchAll(/^#+ (.+)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );

const isBroken = (page: string, link: string): boolean => {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page : join(dirname(page), path);
  if (!existsSync(join(root, target))) return true;
  return anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).includes(anchor);
};

test("every link leads to a file, and to a heading that it has", () => {
  const files = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" });
  const links = files
    .trim()
    .split("\n")
    .flatMap((page) =>
      Array.from(textOf(page).matchAll(/(?:\]\(|^\[[^\]]+\]: )([^()\s:]+)(?=\)|$)/gm), ([, link = ""]) => ({
        page,
        link,
      })),
    );
  expect(links.length).toBeGreaterThan(1000);
  expect(links.filter(({ page, link }) => isBroken(page, link))).toEqual([]);
});
