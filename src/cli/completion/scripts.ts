import type { CommandNode, Flag } from "./command-tree.ts";

export const shells = ["bash", "zsh", "fish", "powershell"] as const;

export type Shell = (typeof shells)[number];

/** Each script finds the command in the words before the cursor, then offers its subcommands and flags. */
export const scripts: Readonly<Record<Shell, (tree: readonly CommandNode[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
  powershell: powershellScript,
};

/** After a flag with a value, and where nothing is known, bash offers files. */
function bashScript(tree: readonly CommandNode[]): string {
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
${tree.flatMap(bashValues).join("\n")}
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

const bashValues = ({ path, flags }: CommandNode): string[] => {
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

function zshScript(tree: readonly CommandNode[]): string {
  const paths = tree.filter(({ path }) => path !== "").map(({ path }) => zshQuote(path));
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
${tree.flatMap(zshValues).join("\n")}
  esac
  case "$path_" in
${tree.map(entriesOf).join("\n")}
  esac
  _describe -t commands leasehold entries || _files
}
if [[ "\${funcstack[1]}" == "_leasehold" ]]; then _leasehold "$@"; else compdef _leasehold leasehold; fi`;
}

const zshQuote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const zshValues = ({ path, flags }: CommandNode): string[] =>
  flags
    .filter(({ takesValue }) => takesValue)
    .map(({ name, choices }) => {
      const offer = choices.length === 0 ? "_files" : `compadd -- ${choices.map(zshQuote).join(" ")}`;
      return `    ${zshQuote(`${path} ${name}`)}) ${offer}; return ;;`;
    });

/** A colon separates the word from its description. */
const entriesOf = ({ path, subcommands, flags }: CommandNode): string => {
  const entries = [...subcommands, ...flags].map(({ name, about }) => zshQuote(`${name}:${about}`));
  return `    ${zshQuote(path)}) entries=(\n      ${entries.join("\n      ")}\n    ) ;;`;
};

function fishScript(tree: readonly CommandNode[]): string {
  const paths = tree.filter(({ path }) => path !== "").map(({ path }) => fishQuote(path));
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

const fishQuote = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", String.raw`\'`)}'`;

const linesOf = ({ path, subcommands, flags }: CommandNode): string[] => {
  const at = `complete -c leasehold -n ${fishQuote(`__leasehold_at ${fishQuote(path)}`)}`;
  return [
    ...subcommands.map(({ name, about }) => `${at} -f -a ${fishQuote(name)} -d ${fishQuote(about)}`),
    ...flags.map((flag) => `${at} ${flagOf(flag)}`),
  ];
};

function flagOf({ name, about, takesValue, choices }: Flag): string {
  const value = choices.length > 0 ? ` -x -a ${fishQuote(choices.join(" "))}` : takesValue ? " -r" : "";
  return `-l ${name.replace(/^--/, "")}${value} -d ${fishQuote(about)}`;
}

function powershellScript(tree: readonly CommandNode[]): string {
  return `# PowerShell completion for leasehold
Register-ArgumentCompleter -Native -CommandName leasehold -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $entries = @{
${tree.map(entryOf).join("\n")}
  }
  $path = ''
  foreach ($element in ($commandAst.CommandElements | Select-Object -Skip 1)) {
    if ($element.Extent.EndOffset -ge $cursorPosition) { break }
    $next = ($path + ' ' + $element.Extent.Text).Trim()
    if ($entries.ContainsKey($next)) { $path = $next }
  }
  $entries[$path] | Where-Object { $_[0] -like "$wordToComplete*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])
  }
}`;
}

const powershellQuote = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** The comma before a pair keeps a list with one pair a list of pairs. */
const entryOf = ({ path, subcommands, flags }: CommandNode): string => {
  const pairs = [...subcommands, ...flags].map(
    ({ name, about }) => `,@(${powershellQuote(name)}, ${powershellQuote(about)})`,
  );
  return `    ${powershellQuote(path)} = @(\n      ${pairs.join("\n      ")}\n    )`;
};
