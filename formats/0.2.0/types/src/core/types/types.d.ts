import type { CanonicalRule } from "../canonical/rule.ts";
export declare const TYPE_KINDS: readonly ["bucket", "subject", "source"];
export type TypeKind = (typeof TYPE_KINDS)[number];
export interface TypeEntry {
    readonly kind: TypeKind;
    readonly number: number;
    readonly name: string;
    readonly rule: CanonicalRule | null;
    readonly isInUse: boolean;
}
export interface NamedType {
    readonly kind: TypeKind;
    readonly name: string;
}
export declare class Types {
    #private;
    readonly entries: readonly TypeEntry[];
    constructor(entries: readonly TypeEntry[]);
    named(kind: TypeKind, name: string): TypeEntry | undefined;
    numbered(kind: TypeKind, number: number): TypeEntry | undefined;
    names(kind: TypeKind): string[];
    select(names: readonly NamedType[]): TypeEntry[];
}
export declare const isSameType: (a: TypeEntry, b: TypeEntry) => boolean;
export declare function ruleText(rule: CanonicalRule | null): string | null;
