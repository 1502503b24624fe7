import { type Result } from "../core/refusal.ts";
export interface Secrets {
    current: string;
    previous: string | undefined;
}
interface SecretVariables {
    LEASEHOLD_SIGNING_SECRET?: string;
    LEASEHOLD_PREVIOUS_SIGNING_SECRET?: string;
}
export declare function secretsOf(variables: SecretVariables): Result<Secrets>;
export {};
