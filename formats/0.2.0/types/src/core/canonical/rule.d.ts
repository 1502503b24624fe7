export interface CanonicalRule {
    readonly form: "plain" | "path" | "email" | "domain";
    readonly script: "single" | "any";
    readonly case: "folded" | "exact";
    readonly pattern?: string;
    readonly minLength?: number;
    readonly maxLength?: number;
}
