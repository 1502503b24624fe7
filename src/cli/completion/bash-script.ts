import type { CommandNode } from "./command-tree.ts";

/** After a flag with a value, and where nothing is known, bash offers files. */
export function bashScript(tree: readonly CommandNode[]): string {
  const paths = tree.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  return `# bash completion for leasehold
_leasehold() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local path="" next word index words=""
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    next="\${path:+$path }$word"
    case "$next" in
      ${paths.join(" | \\\n      ")}) path="$next" ;;
    esac
  done
  COMPREPLY=()
  case "$path $previous" in
${tree.flatMap(valuesOf).join("\n")}
  esac
  if [[ -z "$words" ]]; then
    case "$path" in
${tree.map(wordsOf).join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _leasehold leasehold`;
}

const valuesOf = ({ path, flags }: CommandNode): string[] => {
  const own = flags.filter(({ takesValue }) => takesValue);
  const free = own.filter(({ choices }) => choices.length === 0).map(({ name }) => `"${path} ${name}"`);
  return [
    ...own
      .filter(({ choices }) => choices.length > 0)
      .map(({ name, choices }) => `    "${path} ${name}") words="${choices.join(" ")}" ;;`),
    ...(free.length === 0 ? [] : [`    ${free.join(" | ")}) return ;;`]),
  ];
};

const wordsOf = ({ path, subcommands, flags }: CommandNode): string =>
  `      "${path}") words="${[...subcommands, ...flags].map(({ name }) => name).join(" ")}" ;;`;
