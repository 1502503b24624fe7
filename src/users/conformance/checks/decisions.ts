/** What commits, rollbacks and renewals do, and who may decide. */
import type { Check } from "../check-context.ts";
import { describe, expectFields, expectRefusal, expectStatus, expectThat } from "../nonconformity.ts";

function pointOf(header: string | null): { incarnation: number; position: number } {
  const [, incarnation, position] = /^(\d+)\.(\d+)$/.exec(header ?? "") ?? [];
  expectThat(incarnation !== undefined, `leasehold-history is ${header ?? "absent"}`);
  return { incarnation: Number(incarnation), position: Number(position) };
}

export const decisionChecks: readonly Check[] = [
  {
    id: "decision/repeated",
    rules: ["C1", "C4"],
    title: "The same decision again is the same success, and the opposite one is refused.",
    run: async (context) => {
      const name = context.name();
      const committed = await context.granted({ creates: [context.op(name)] });
      await context.commit(committed);
      await context.commit(committed);
      expectRefusal(await context.decide(committed, "rollback"), 409, {
        code: "FAILED_PRECONDITION",
        reason: "LEASE_COMMITTED",
      });
      expectFields(await context.lookUp(name), { record: { status: "ACTIVE" } });

      const other = context.name();
      const rolledBack = await context.granted({ creates: [context.op(other)] });
      await context.rollBack(rolledBack);
      await context.rollBack(rolledBack);
      expectRefusal(await context.decide(rolledBack, "commit"), 409, {
        code: "FAILED_PRECONDITION",
        reason: "LEASE_ROLLED_BACK",
      });
      await context.absent(other);
    },
  },
  {
    id: "decision/race",
    rules: ["C1"],
    title: "Of a commit and a rollback at the same time, one wins, and the name agrees with it.",
    run: async (context) => {
      for (let round = 0; round < 6; round += 1) {
        const name = context.name();
        const lease = await context.granted({ creates: [context.op(name)] });
        const [commit, rollback] = await Promise.all([
          context.decide(lease, "commit"),
          context.decide(lease, "rollback"),
        ]);
        expectStatus(commit, 200, 409);
        expectStatus(rollback, 200, 409);
        expectThat(
          commit.status !== rollback.status,
          `a commit and a rollback of one lease were both answered with ${commit.status}`,
        );
        const state = commit.status === 200 ? "COMMITTED" : "ROLLED_BACK";
        expectFields(await context.send("GET", context.leasePath(lease.uuid)), { lease: { state } });
        if (state === "COMMITTED") await context.record(name);
        else await context.absent(name);
      }
    },
  },
  {
    id: "decision/commit-of-unknown",
    rules: ["C4"],
    title: "A commit of a lease that was never begun is NOT_FOUND.",
    run: async (context) => {
      const lease = { uuid: context.newUuid(), by: "cell" } as const;
      expectRefusal(await context.decide(lease, "commit"), 404, { code: "NOT_FOUND" });
    },
  },
  {
    id: "decision/fence",
    rules: ["C7"],
    title: "A rollback of a lease that was never begun refuses the begin that comes later.",
    run: async (context) => {
      const name = context.name();
      const lease = { uuid: context.newUuid(), by: "cell" } as const;
      const fenced = await context.rollBack(lease);
      expectFields(fenced, { lease: { counts: { creates: 0, destroys: 0, replaces: 0, missing: 0 } } });
      const { received } = await context.begin({ creates: [context.op(name)] }, { uuid: lease.uuid });
      expectRefusal(received, 409, { code: "FAILED_PRECONDITION", reason: "LEASE_ROLLED_BACK" });
      expectRefusal(await context.decide(lease, "commit"), 409, { code: "FAILED_PRECONDITION" });
      await context.absent(name);
    },
  },
  {
    id: "decision/fence-of-running-begin",
    rules: ["C7"],
    title: "A rollback that meets the running begin of its lease leaves nothing of it.",
    run: async (context) => {
      for (let round = 0; round < 5; round += 1) {
        const names = context.names(4);
        const uuid = context.newUuid();
        const [{ received }] = await Promise.all([
          context.begin({ creates: names.map((name) => context.op(name)) }, { uuid }),
          context.rollBack({ uuid, by: "cell" }),
        ]);
        expectStatus(received, 201, 409);
        if (received.status === 409) expectFields(received, { reason: "LEASE_ROLLED_BACK" });
        for (const name of names) await context.absent(name);
      }
    },
  },
  {
    id: "decision/carried-out",
    rules: ["C2", "C3", "R2"],
    title: "Once a decision is answered, lookups, lists and begins show what it did.",
    run: async (context) => {
      for (let round = 0; round < 8; round += 1) {
        const [name = "", dropped = ""] = context.names(2);
        await context.commit(await context.granted({ creates: [context.op(name)] }));
        const found = await context.lookUp(name);
        expectStatus(found, 200);
        expectFields(found, { record: { status: "ACTIVE", lease_uuid: null } });
        await context.rollBack(await context.granted({ creates: [context.op(dropped)] }));
        await context.absent(dropped);
        const destroying = await context.granted({ destroys: [{ bucket: context.bucket(name) }] });
        await context.commit(destroying);
        await context.absent(name);
        await context.rollBack(await context.granted({ creates: [context.op(name)] }));
      }
    },
  },
  {
    id: "decision/destroy-rolled-back",
    rules: ["C3"],
    title: "A destroy or replace that is rolled back leaves the claim as it was.",
    run: async (context) => {
      const name = context.name();
      await context.own([name]);
      const before = await context.record(name);
      await context.rollBack(await context.granted({ destroys: [{ bucket: context.bucket(name) }] }));
      await context.rollBack(await context.granted({ replaces: [context.op(name, { subject: "8" })] }));
      expectFields(await context.lookUp(name), { record: before });
    },
  },
  {
    id: "decision/only-its-cell",
    rules: ["C5", "B2"],
    title: "A cell neither sees nor decides the lease of another cell.",
    needs: ["other"],
    run: async (context) => {
      const name = context.name();
      const lease = await context.granted({ creates: [context.op(name)] });
      const { uuid } = lease;
      const own = context.leasePath(uuid, "other");
      const hidden = await context.send("GET", own, { who: "other" });
      expectRefusal(hidden, 404, { code: "NOT_FOUND" });
      const none = await context.send("GET", context.leasePath(context.newUuid(), "other"), { who: "other" });
      const { request_id: _, ...shown } = hidden.json as Record<string, unknown>;
      expectFields(none, shown);
      expectRefusal(await context.send("POST", `${own}/commit`, { who: "other" }), 404, {
        code: "NOT_FOUND",
      });
      for (const [method, path] of [
        ["GET", context.leasePath(uuid)],
        ["POST", `${context.leasePath(uuid)}/commit`],
        ["POST", `${context.leasePath(uuid)}/rollback`],
      ] as const)
        expectRefusal(await context.send(method, path, { who: "other" }), 403, { code: "PERMISSION_DENIED" });
      expectFields(await context.send("GET", context.leasePath(uuid)), { lease: { state: "GRANTED" } });
      await context.commit(lease);
    },
  },
  {
    id: "decision/operator-gives-a-reason",
    rules: ["C5"],
    title: "An operator decides a lease with a reason, which is kept, and not without one.",
    needs: ["operator"],
    run: async (context) => {
      const lease = await context.granted({ creates: [context.op(context.name())] });
      for (const decision of ["commit", "rollback"] as const) {
        const received = await context.send("POST", `${context.leasePath(lease.uuid)}/${decision}`, {
          who: "operator",
        });
        expectRefusal(received, 400, { code: "INVALID_ARGUMENT" });
      }
      const path = context.leasePath(lease.uuid);
      expectFields(await context.send("GET", path), { lease: { state: "GRANTED" } });
      const body = { reason: "a conformance test" };
      expectStatus(await context.send("POST", `${path}/rollback`, { who: "operator", body }), 200);
      expectFields(await context.send("GET", path), {
        lease: { state: "ROLLED_BACK", decided_by: "operator", ...body },
      });
      context.leases.decided(lease.uuid, lease.by);
    },
  },
  {
    id: "decision/renewal",
    rules: ["C8"],
    title: "A renewal changes neither the lease nor its names, and a decided lease can't be renewed.",
    run: async (context) => {
      const name = context.name();
      const lease = await context.granted({ creates: [context.op(name)] });
      const path = `${context.leasePath(lease.uuid)}/renew`;
      const renewed = await context.send("POST", path, { body: { reason: "a conformance test" } });
      expectStatus(renewed, 200);
      expectFields(renewed, { lease: { state: "GRANTED", renewal_reason: "a conformance test" } });
      expectFields(await context.lookUp(name), {
        record: { status: "LEASE_CREATING", lease_uuid: lease.uuid },
      });
      expectRefusal(await context.send("POST", path, { body: {} }), 400, { code: "INVALID_ARGUMENT" });
      await context.commit(lease);
      expectRefusal(await context.send("POST", path, { body: { reason: "late" } }), 409, {
        code: "FAILED_PRECONDITION",
      });
    },
  },
  {
    id: "decision/history-of-the-ledger",
    rules: ["L7", "H2"],
    title: "Answers about leases have the ledger's newest point, which only grows and can be sent back.",
    run: async (context) => {
      const batch = { creates: [context.op(context.name())] };
      const lease = await context.granted(batch);
      const begun = lease.received.header("leasehold-history");
      const decided = (await context.commit(lease)).header("leasehold-history");
      const [first, second] = [pointOf(begun), pointOf(decided)];
      expectThat(
        second.incarnation > first.incarnation ||
          (second.incarnation === first.incarnation && second.position > first.position),
        `leasehold-history was ${begun} and is ${decided} after a commit`,
      );
      // Only points that the ledger has told: it would refuse everything after one that it never had.
      const headers = { "leasehold-history": decided ?? "" };
      expectStatus(await context.send("GET", context.leasePath(lease.uuid), { headers }), 200);
      const malformed = await context.send("GET", context.leasePath(lease.uuid), {
        headers: { "leasehold-history": "1.x" },
      });
      expectThat(malformed.status === 400, `a malformed leasehold-history: ${describe(malformed)}`);
    },
  },
];
