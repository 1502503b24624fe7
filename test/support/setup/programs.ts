/** The programs that some tests need and npm does not install. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findChromium } from "../browser/find-chromium.ts";
import { isInstalled } from "../databases/programs.ts";
import { findPython } from "../python.ts";

export interface SystemProgram {
  name: string;
  /** The Debian packages that contain the program. */
  packages: readonly string[];
  /** The tests that are skipped, or the commands that fail, without the program. */
  neededBy: string;
  isInstalled: () => boolean;
}

const canRequire = (library: string): boolean =>
  spawnSync("ruby", ["-r", library, "-e", ""], { stdio: "ignore" }).status === 0;

export const isInPath = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, program)));

export const systemPrograms: readonly SystemProgram[] = [
  {
    name: "PostgreSQL",
    packages: ["postgresql"],
    neededBy: "tests of cells on PostgreSQL",
    isInstalled: () => isInstalled("PostgreSQL"),
  },
  {
    name: "MariaDB",
    packages: ["mariadb-server"],
    neededBy: "tests of cells on MariaDB",
    isInstalled: () => isInstalled("MariaDB"),
  },
  {
    name: "Python with psycopg 3",
    packages: ["python3-psycopg"],
    neededBy: "tests of the cell in Python",
    isInstalled: () => findPython() !== undefined,
  },
  {
    name: "Ruby with gRPC",
    packages: ["ruby-grpc"],
    neededBy: "tests of native gRPC",
    isInstalled: () => isInPath("ruby") && canRequire("grpc"),
  },
  {
    name: "Chromium",
    packages: ["chromium"],
    neededBy: "browser tests of the example",
    isInstalled: () => findChromium() !== undefined,
  },
  {
    name: "Prometheus",
    packages: ["prometheus"],
    neededBy: "tests of alerts and of a scrape",
    isInstalled: () => isInPath("promtool") && isInPath("prometheus"),
  },
  {
    name: "zsh and fish",
    packages: ["zsh", "fish"],
    neededBy: "tests of the completion of commands",
    isInstalled: () => isInPath("zsh") && isInPath("fish"),
  },
  {
    name: "Spin",
    packages: ["spin"],
    neededBy: "npm run model",
    isInstalled: () => isInPath("spin"),
  },
  {
    name: "a C compiler",
    packages: ["gcc", "libc6-dev"],
    neededBy: "npm run model, and a test of clocks",
    isInstalled: () => isInPath("gcc"),
  },
];
