import type { Limits } from "./limits.ts";
import type { Envelope, Operator } from "./messages.ts";
import type { Ports } from "./ports.ts";
import { type Refusal } from "./refusal.ts";
export declare const auditActions: readonly ["add_cell", "change_cell", "freeze_cell", "drain_cell", "undrain_cell", "start_removal", "remove_cell", "unfreeze_cell", "mint_key", "revoke_key", "change_types", "change_identities", "start_growth", "cut_growth", "abort_growth", "start_restore", "end_restore", "finish_upgrade", "begin_lease", "commit_lease", "rollback_lease", "prepare_transfer", "accept_transfer", "report_transfer", "cut_transfer", "abort_transfer", "reconcile_part", "finish_part", "erase_history", "add_webhook", "change_webhook", "remove_webhook", "test_webhook"];
export type AuditAction = (typeof auditActions)[number];
export type AuditState = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;
export interface AuditedChange {
    action: AuditAction;
    cell: string | null;
    target: string;
    before: AuditState | null;
    after: AuditState | null;
}
export interface AuditEntry {
    id: string;
    atMs: number;
    keyId: string;
    requestId: string;
    action: AuditAction;
    cell: string | null;
    target: string;
    reason: string | null;
    before: string | null;
    after: string | null;
}
export declare const AUDIT_PAGE = 500;
export interface PullAudit extends Envelope {
    copied: string | null;
    limit: number;
}
export interface AuditPage {
    entries: AuditEntry[];
    more: boolean;
}
export declare const AUDIT_TABLE = "CREATE TABLE audit (\n   number INTEGER NOT NULL PRIMARY KEY,\n   id TEXT NOT NULL,\n   at_ms INTEGER NOT NULL,\n   key_id TEXT NOT NULL,\n   request_id TEXT NOT NULL,\n   action TEXT NOT NULL,\n   cell TEXT,\n   target TEXT NOT NULL,\n   reason TEXT,\n   before TEXT,\n   after TEXT\n ) STRICT, WITHOUT ROWID";
export declare class Audit {
    #private;
    constructor(ports: Pick<Ports, "sql" | "clock" | "randomness">, limits: Limits, name: string);
    get count(): number;
    get refusal(): Refusal | undefined;
    get cellRefusal(): Refusal | undefined;
    append({ keyId, requestId, reason }: Operator, { action, cell, target, before, after }: AuditedChange): void;
    page(limit: number): AuditPage;
    forget(copied: string): void;
}
