import type { CommandNode, Flag } from "./command-tree.ts";

export function fishScript(tree: readonly CommandNode[]): string {
  const paths = tree.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  return `# fish completion for leasehold
function __leasehold_at
    set -l path ''
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$path $word")
        if contains -- "$next" ${paths.join(" ")}
            set path $next
        end
    end
    test "$path" = "$argv[1]"
end
${tree.flatMap(linesOf).join("\n")}`;
}

const quote = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", String.raw`\'`)}'`;

const linesOf = ({ path, subcommands, flags }: CommandNode): string[] => {
  const at = `complete -c leasehold -n ${quote(`__leasehold_at ${quote(path)}`)}`;
  return [
    ...subcommands.map(({ name, about }) => `${at} -f -a ${quote(name)} -d ${quote(about)}`),
    ...flags.map((flag) => `${at} ${flagOf(flag)}`),
  ];
};

function flagOf({ name, about, takesValue, choices }: Flag): string {
  const value = choices.length > 0 ? ` -x -a ${quote(choices.join(" "))}` : takesValue ? " -r" : "";
  return `-l ${name.replace(/^--/, "")}${value} -d ${quote(about)}`;
}
