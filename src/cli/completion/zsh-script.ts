import type { CommandNode } from "./command-tree.ts";

export function zshScript(tree: readonly CommandNode[]): string {
  const paths = tree.filter(({ path }) => path !== "").map(({ path }) => quote(path));
  return `#compdef leasehold
# zsh completion for leasehold
_leasehold() {
  local path_="" next word index
  local -a entries
  for ((index = 2; index < CURRENT; index++)); do
    word="\${words[index]}"
    next="\${path_:+$path_ }$word"
    case "$next" in
      ${paths.join("|")}) path_="$next" ;;
    esac
  done
  case "$path_ \${words[CURRENT-1]}" in
${tree.flatMap(valuesOf).join("\n")}
  esac
  case "$path_" in
${tree.map(entriesOf).join("\n")}
  esac
  _describe -t commands leasehold entries || _files
}
if [[ "\${funcstack[1]}" == "_leasehold" ]]; then _leasehold "$@"; else compdef _leasehold leasehold; fi`;
}

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const valuesOf = ({ path, flags }: CommandNode): string[] =>
  flags
    .filter(({ takesValue }) => takesValue)
    .map(({ name, choices }) => {
      const offer = choices.length === 0 ? "_files" : `compadd -- ${choices.map(quote).join(" ")}`;
      return `    ${quote(`${path} ${name}`)}) ${offer}; return ;;`;
    });

/** A colon separates the word from its description. */
const entriesOf = ({ path, subcommands, flags }: CommandNode): string => {
  const entries = [...subcommands, ...flags].map(({ name, about }) => quote(`${name}:${about}`));
  return `    ${quote(path)}) entries=(\n      ${entries.join("\n      ")}\n    ) ;;`;
};
