import type { CommandNode } from "./command-tree.ts";

export function powershellScript(tree: readonly CommandNode[]): string {
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

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** The comma before a pair keeps a list with one pair a list of pairs. */
const entryOf = ({ path, subcommands, flags }: CommandNode): string => {
  const pairs = [...subcommands, ...flags].map(({ name, about }) => `,@(${quote(name)}, ${quote(about)})`);
  return `    ${quote(path)} = @(\n      ${pairs.join("\n      ")}\n    )`;
};
