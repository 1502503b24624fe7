import { bashScript } from "./bash-script.ts";
import type { CommandNode } from "./command-tree.ts";
import { fishScript } from "./fish-script.ts";
import { powershellScript } from "./powershell-script.ts";
import { zshScript } from "./zsh-script.ts";

export const shells = ["bash", "zsh", "fish", "powershell"] as const;

export type Shell = (typeof shells)[number];

/** Each script finds the command in the words before the cursor, then offers its subcommands and flags. */
export const scripts: Readonly<Record<Shell, (tree: readonly CommandNode[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
  powershell: powershellScript,
};
