/**
 * Finds what the sources keep in memory, so that a test can compare it with docs/reference/storage.md: every
 * field of a class, and every variable of a module, that holds a collection or a promise.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  parseSync,
  Visitor,
  type Class,
  type Expression,
  type Function as AnyFunction,
  type Program,
  type TSType,
} from "oxc-parser";
import { limitTable, type LimitName } from "../../src/common/limits.ts";

const root = join(import.meta.dirname, "../../src");

/** The folders whose code runs in an object, in an isolate of the Worker, or in the host of both in Node. */
const FOLDERS = ["common", "coordinator", "hosts/node", "hosts/standalone"];

/** Types that can grow, or keep something alive. */
const GROWING = new Set([
  "Map",
  "Set",
  "WeakMap",
  "WeakSet",
  "Array",
  "ReadonlyMap",
  "ReadonlySet",
  "ReadonlyArray",
  "Promise",
  "FairQueue",
]);

/** Values that a class only gets passed. They are not part of what it keeps. */
const PASSED = new Set([
  "AccessSettings",
  "AuditTrail",
  "CheckedDeployment",
  "Config",
  "CronRun",
  "Envelope",
  "HookLists",
  "ScrapedDeployment",
]);

interface Source {
  file: string;
  text: string;
  program: Program;
}

function readSources(): Source[] {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => join(folder, file)),
  );
  return files.map((file) => {
    const text = readFileSync(join(root, file), "utf8");
    return { file, text, program: parseSync(file, text).program };
  });
}

type Shapes = ReadonlyMap<string, readonly TSType[]>;

/** The types of the members of each interface and type alias, by name. */
function shapesOf(sources: readonly Source[]): Shapes {
  const shapes = new Map<string, TSType[]>();
  const add = (name: string, types: readonly TSType[]): void => {
    shapes.set(name, [...(shapes.get(name) ?? []), ...types]);
  };
  for (const { program } of sources) {
    new Visitor({
      TSInterfaceDeclaration({ id, body }) {
        for (const member of body.body)
          if (member.type === "TSPropertySignature" && member.typeAnnotation)
            add(id.name, [member.typeAnnotation.typeAnnotation]);
      },
      TSTypeAliasDeclaration({ id, typeAnnotation }) {
        add(id.name, [typeAnnotation]);
      },
    }).visit(program);
  }
  return shapes;
}

/** Whether a value of this type can grow. Functions and other classes are found by themselves. */
function grows(type: TSType, shapes: Shapes, seen = new Set<string>()): boolean {
  const any = (types: readonly TSType[]): boolean => types.some((each) => grows(each, shapes, seen));
  switch (type.type) {
    case "TSArrayType":
      return true;
    case "TSUnionType":
    case "TSIntersectionType":
      return any(type.types);
    case "TSTypeOperator":
      return any([type.typeAnnotation]);
    case "TSTypeLiteral":
      return any(
        type.members.flatMap((member) =>
          member.type === "TSPropertySignature" && member.typeAnnotation
            ? [member.typeAnnotation.typeAnnotation]
            : [],
        ),
      );
    case "TSTypeReference": {
      const name = type.typeName.type === "Identifier" ? type.typeName.name : "";
      if (GROWING.has(name)) return true;
      // A record of fixed names only grows if its values do.
      if (name === "Record") {
        const [key, value] = type.typeArguments?.params ?? [];
        return key?.type === "TSStringKeyword" || (value !== undefined && any([value]));
      }
      if (PASSED.has(name) || seen.has(name)) return false;
      seen.add(name);
      return any(shapes.get(name) ?? []);
    }
    default:
      return false;
  }
}

const NEW = /^new (Map|Set|WeakMap|WeakSet|Array|FairQueue)\b|^\[/;

function fieldsOf({ id, body }: Class, { text }: Source, shapes: Shapes): string[] {
  return body.body.flatMap((member) => {
    if (member.type !== "PropertyDefinition" || member.static) return [];
    const declared = member.typeAnnotation?.typeAnnotation;
    const value = member.value === null ? "" : text.slice(member.value.start, member.value.end);
    const isGrowing = declared === undefined ? NEW.test(value) : grows(declared, shapes);
    const name = text.slice(member.key.start, member.key.end);
    return isGrowing ? [`${id?.name ?? "class"}.${name}`] : [];
  });
}

/** Variables of the module that can change. A constant table is declared as readonly. */
function variablesOf({ program, text }: Source): string[] {
  return program.body.flatMap((statement) => {
    const declaration = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration?.type !== "VariableDeclaration") return [];
    return declaration.declarations.flatMap(({ id, init }) => {
      if (id.type !== "Identifier" || init === null) return [];
      const type =
        id.typeAnnotation == null ? "" : text.slice(id.typeAnnotation.start, id.typeAnnotation.end);
      const isNew = /^new (Map|Set|WeakMap|WeakSet)\b/.test(text.slice(init.start, init.end));
      const changes = declaration.kind === "let" || (isNew && !type.includes("Readonly"));
      return changes ? [id.name] : [];
    });
  });
}

/** Collections of a function that the functions which it returns keep alive, as `function.variable`. */
function closuresOf({ id, body }: AnyFunction, { text }: Source): string[] {
  const statements = body?.body ?? [];
  const returned = statements.flatMap((statement) =>
    statement.type === "ReturnStatement" && statement.argument !== null ? [statement.argument] : [],
  );
  const kept = returned.filter(
    ({ type }) => type === "ArrowFunctionExpression" || type === "FunctionExpression",
  );
  return statements.flatMap((statement) =>
    statement.type !== "VariableDeclaration"
      ? []
      : statement.declarations.flatMap(({ id: variable, init }) => {
          if (variable.type !== "Identifier" || init === null || !NEW.test(text.slice(init.start, init.end)))
            return [];
          const isUsed = kept.some(({ start, end }) =>
            new RegExp(String.raw`\b${variable.name}\b`).test(text.slice(start, end)),
          );
          return isUsed ? [`${id?.name ?? "function"}.${variable.name}`] : [];
        }),
  );
}

/** The methods of an object that a function returns, as `Shard.exchange`. */
function handlersOf({ returnType, body }: AnyFunction, { text }: Source): string[] {
  const type = returnType == null ? "" : text.slice(returnType.start, returnType.end);
  const [, kind] = /^: Handlers<typeof (\w+)Methods>$/.exec(type) ?? [];
  if (kind === undefined) return [];
  return (body?.body ?? []).flatMap((statement) =>
    statement.type === "ReturnStatement" && statement.argument?.type === "ObjectExpression"
      ? statement.argument.properties.flatMap((property) =>
          property.type === "Property"
            ? [
                `${kind.charAt(0).toUpperCase()}${kind.slice(1)}.` +
                  text.slice(property.key.start, property.key.end),
              ]
            : [],
        )
      : [],
  );
}

/** Returns the value of a constant, or undefined if it is not a number that the source determines. */
function valueOf(node: Expression, source: Source, known: ReadonlyMap<string, number>): number | undefined {
  if (node.type === "Literal") return typeof node.value === "number" ? node.value : undefined;
  if (node.type === "Identifier") return known.get(node.name);
  if (node.type === "BinaryExpression" && node.left.type !== "PrivateIdentifier") {
    const left = valueOf(node.left, source, known);
    const right = valueOf(node.right, source, known);
    return left !== undefined && right !== undefined && node.operator === "*" ? left * right : undefined;
  }
  const limit = /^limitTable\.(\w+)\.(default|min|max)$/.exec(source.text.slice(node.start, node.end));
  return limit === null
    ? undefined
    : limitTable[limit[1] as LimitName][limit[2] as "default" | "min" | "max"];
}

function constantsOf(source: Source): Map<string, number> {
  const known = new Map<string, number>();
  for (const statement of source.program.body) {
    const declaration = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration?.type !== "VariableDeclaration") continue;
    for (const { id, init } of declaration.declarations) {
      const value = init === null ? undefined : valueOf(init, source, known);
      if (id.type === "Identifier" && value !== undefined) known.set(id.name, value);
    }
  }
  return known;
}

export interface Structures {
  /** Fields, as `Class.#field`, and variables of modules. */
  memory: string[];
  /** The names under which objects store single values. */
  metaKeys: string[];
  /** Methods and functions, as `Class.method`, `Object.method` and `function`, and variables. */
  names: Set<string>;
  /** The values of constants. Constants of several modules may have the same name. */
  constants: Map<string, number[]>;
}

export function findStructures(): Structures {
  const sources = readSources();
  const shapes = shapesOf(sources);
  const memory: string[] = [];
  const metaKeys = new Set<string>();
  const names = new Set<string>();
  const constants = new Map<string, number[]>();
  for (const source of sources) {
    memory.push(...variablesOf(source));
    for (const [name, value] of constantsOf(source))
      constants.set(name, [...(constants.get(name) ?? []), value]);
    const onClass = (node: Class): void => {
      memory.push(...fieldsOf(node, source, shapes));
      for (const member of node.body.body)
        if (member.type === "MethodDefinition")
          names.add(`${node.id?.name ?? ""}.${source.text.slice(member.key.start, member.key.end)}`);
    };
    new Visitor({
      ClassDeclaration: onClass,
      ClassExpression: onClass,
      FunctionDeclaration(node) {
        names.add(node.id?.name ?? "");
        for (const name of handlersOf(node, source)) names.add(name);
        memory.push(...closuresOf(node, source));
      },
      VariableDeclarator({ id }) {
        if (id.type === "Identifier") names.add(id.name);
      },
      CallExpression({ callee, arguments: [first, second] }) {
        const called = source.text.slice(callee.start, callee.end);
        const name =
          called === "writeMeta" ? second : /\.(setNumber|putSetting)$/.test(called) ? first : undefined;
        if (name === undefined) return;
        if (name.type === "Literal" && typeof name.value === "string") metaKeys.add(name.value);
        else if (!/\b(name)\b/.test(source.text.slice(name.start, name.end)))
          throw new Error(`${source.file} stores a value under a name that is no literal`);
      },
    }).visit(source.program);
  }
  return { memory: memory.toSorted(), metaKeys: [...metaKeys].toSorted(), names, constants };
}
