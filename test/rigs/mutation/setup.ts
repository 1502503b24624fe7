import { beforeEach } from "vitest";

/** Tests of every code point take seconds for each mutant, and other tests find the same mutants. */
const EXHAUSTIVE = /of one code point/;

beforeEach(({ task, skip }) => skip(EXHAUSTIVE.test(task.name), "takes too long for every mutant"));
