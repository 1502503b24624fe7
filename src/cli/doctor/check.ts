/** The result of one check. */
export interface Check {
  /** Such as `key expiry`. It is the same in every deployment. */
  name: string;
  state: "ok" | "warn" | "fail";
  /** For people. It may contain addresses, so it is not in the bundle. */
  detail: string;
  /** Numbers for the bundle: no names, keys or addresses. */
  facts: Readonly<Record<string, number | boolean | null>>;
  next?: string;
}

export const ok = (name: string, detail: string, facts: Check["facts"] = {}): Check => ({
  name,
  state: "ok",
  detail,
  facts,
});

export const warn = (name: string, detail: string, next?: string, facts: Check["facts"] = {}): Check => ({
  name,
  state: "warn",
  detail,
  facts,
  ...(next === undefined ? {} : { next }),
});

export const fail = (name: string, detail: string, next?: string, facts: Check["facts"] = {}): Check => ({
  ...warn(name, detail, next, facts),
  state: "fail",
});
