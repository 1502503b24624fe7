import type { Result } from "./refusal.ts";
import type { Envelope, Told } from "./messages.ts";
export type Level = "unplaced" | "always" | "peer" | "call" | "read" | "whole";
export interface Method<Message extends Envelope, Value> {
    readonly level: Level;
    readonly tells: boolean;
    readonly types?: {
        message: Message;
        value: Value;
    };
}
export type MethodList = Readonly<Record<string, Method<Envelope, unknown>>>;
export declare const method: <Message extends Envelope, Value>(level: Level) => Method<Message, Value>;
export declare const peerMethod: <Message extends Envelope, Value>(level: Level) => Method<Message, Value>;
export type Calls<List extends MethodList> = {
    readonly [Name in keyof List]: List[Name] extends Method<infer Message, infer Value> ? (message: Message) => Promise<Result<Value> & Told> : never;
};
export declare function defineMethods<T extends object>(prototype: T, methods: MethodList, call: (self: T, name: string, message: Envelope, level: Level) => Promise<unknown>): void;
