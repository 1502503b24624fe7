import { peers } from "./entries.ts";

const ranges: Readonly<Record<string, string>> = peers;

/** A peer with the versions that fit, without characters that a shell would interpret: `drizzle-orm@0.45`. */
function peerSpec(name: keyof typeof peers): string {
  const [major = "", minor = ""] = (ranges[name] ?? "").replace("^", "").split(".");
  return `${name}@${major === "0" ? `${major}.${minor}` : major}`;
}

const drivers = ["pg", "postgres", "@electric-sql/pglite", "mysql2"] as const;

/** What `npm run build:sdk` prints: the line that installs the package into an application. */
export function installHelp(tarball: string): string {
  const [driver, ...others] = drivers.map(peerSpec);
  const path = /^[\w./-]+$/.test(tarball) ? tarball : `'${tarball.replaceAll("'", String.raw`'\''`)}'`;
  return `Install it in the folder of your application:

  npm install ${path} ${peerSpec("drizzle-orm")} ${driver}

${driver} is the driver node-postgres. The others are ${others.slice(0, -1).join(", ")} and ${others.at(-1)}.
An application that uses only leasehold/client or leasehold/testing needs neither drizzle-orm nor a driver.
`;
}
