/** The content of a body: JSON, and text that only looks like JSON. */
export type Tree = null | boolean | number | string | Raw | Pairs | Tree[] | { [name: string]: Tree };

/** Text that is inserted unchanged: numbers that JavaScript cannot represent, and invalid JSON. */
export class Raw {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** An object that may contain a name twice, or the name `__proto__`. */
export class Pairs {
  readonly pairs: readonly (readonly [string, Tree])[];
  constructor(pairs: readonly (readonly [string, Tree])[]) {
    this.pairs = pairs;
  }
}

export const isObject = (tree: Tree | undefined): tree is { [name: string]: Tree } =>
  typeof tree === "object" &&
  tree !== null &&
  !Array.isArray(tree) &&
  !(tree instanceof Raw) &&
  !(tree instanceof Pairs);

export function textOf(tree: Tree): string {
  if (tree instanceof Raw) return tree.text;
  if (Array.isArray(tree)) return `[${tree.map(textOf).join(",")}]`;
  const pairs = tree instanceof Pairs ? tree.pairs : isObject(tree) ? Object.entries(tree) : undefined;
  if (pairs === undefined) return JSON.stringify(tree);
  return `{${pairs.map(([name, value]) => `${JSON.stringify(name)}:${textOf(value)}`).join(",")}}`;
}

/** The value as text, for places such as a path. */
export const textIn = (tree: Tree | undefined): string =>
  typeof tree === "string" ? tree : tree === undefined || tree === null ? "" : textOf(tree);

export type TreePath = readonly (string | number)[];

/** All paths in a tree, the tree itself first. */
export function pathsIn(tree: Tree, path: TreePath = []): TreePath[] {
  const inside: [string | number, Tree][] = Array.isArray(tree)
    ? [...tree.entries()]
    : isObject(tree)
      ? Object.entries(tree)
      : [];
  return [path, ...inside.flatMap(([name, child]) => pathsIn(child, [...path, name]))];
}

export function at(tree: Tree, [name, ...rest]: TreePath): Tree | undefined {
  if (name === undefined) return tree;
  const child = Array.isArray(tree) ? tree[Number(name)] : isObject(tree) ? tree[name] : undefined;
  return child === undefined ? undefined : at(child, rest);
}

/** The tree with the value at a path changed. Undefined removes it. */
export function withChange(
  tree: Tree,
  [name, ...rest]: TreePath,
  change: (before: Tree) => Tree | undefined,
): Tree | undefined {
  if (name === undefined) return change(tree);
  if (Array.isArray(tree)) {
    const items = tree.flatMap((item, index) => {
      const changed = index === name ? withChange(item, rest, change) : item;
      return changed === undefined ? [] : [changed];
    });
    return items;
  }
  if (!isObject(tree)) return tree;
  const pairs = Object.entries(tree).flatMap(([key, value]): [string, Tree][] => {
    const changed = key === name ? withChange(value, rest, change) : value;
    return changed === undefined ? [] : [[key, changed]];
  });
  return Object.fromEntries(pairs);
}
