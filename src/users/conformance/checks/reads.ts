/** What lookups and the reads of operators show. */
import type { Check, CheckContext, SeenRecord } from "../check-context.ts";
import { expectEqual, expectFields, expectRefusal, expectStatus, expectThat } from "../nonconformity.ts";

const lookUpAll = (context: CheckContext, values: readonly string[], who: "cell" | "other" = "cell") =>
  context.send("POST", "/v1/records/lookup", {
    who,
    body: { buckets: values.map((value) => context.bucket(value)) },
  });

export const readChecks: readonly Check[] = [
  {
    id: "lookup/create",
    rules: ["R2"],
    title: "A granted create shows as LEASE_CREATING with its lease, and not at all after a rollback.",
    run: async (context) => {
      const name = context.name();
      await context.absent(name);
      const lease = await context.granted({ creates: [context.op(name)] });
      const received = await context.lookUp(name);
      expectStatus(received, 200);
      const { types } = context.deployment;
      expectFields(received, {
        record: {
          status: "LEASE_CREATING",
          lease_uuid: lease.uuid,
          cell_id: context.cellId(),
          bucket: context.bucket(name),
          subject: { type: types.subject, id: "7" },
          source: { type: types.source, id: name },
        },
        cell: { id: context.cellId() },
      });
      await context.rollBack(lease);
      await context.absent(name);
    },
  },
  {
    id: "lookup/destroy",
    rules: ["R2"],
    title: "A granted destroy shows the claim as LEASE_DESTROYING until it is committed.",
    run: async (context) => {
      const name = context.name();
      await context.own([name]);
      const lease = await context.granted({ destroys: [{ bucket: context.bucket(name) }] });
      const shown = { record: { status: "LEASE_DESTROYING", lease_uuid: lease.uuid } };
      const received = await context.lookUp(name);
      expectStatus(received, 200);
      expectFields(received, shown);
      expectFields(await lookUpAll(context, [name]), { results: [{ found: true, ...shown }] });
      await context.commit(lease);
      await context.absent(name);
      expectFields(await lookUpAll(context, [name]), { results: [{ found: false }] });
    },
  },
  {
    id: "lookup/replace",
    rules: ["R2"],
    title:
      "A granted replace shows the old claim as ACTIVE with the lease, and the new one after the commit.",
    run: async (context) => {
      const name = context.name();
      await context.own([name]);
      const lease = await context.granted({ replaces: [context.op(name, { subject: "8" })] });
      expectFields(await context.lookUp(name), {
        record: { status: "ACTIVE", lease_uuid: lease.uuid, subject: { id: "7" } },
      });
      await context.commit(lease);
      expectFields(await context.lookUp(name), {
        record: { status: "ACTIVE", lease_uuid: null, subject: { id: "8" } },
      });
    },
  },
  {
    id: "lookup/many",
    rules: ["R2"],
    title: "A lookup of many names answers them in order, also the same name twice.",
    run: async (context) => {
      const names = context.names(10);
      const owned = names.filter((_, index) => index % 2 === 0);
      await context.own(owned);
      const asked = [...names, ...names];
      const received = await lookUpAll(context, asked);
      expectStatus(received, 200);
      expectFields(received, {
        results: asked.map((name) => ({ bucket: context.bucket(name), found: owned.includes(name) })),
      });
    },
  },
  {
    id: "lookup/other-cell",
    rules: ["R2", "API"],
    title: "A cell sees only bucket, status and cell of another cell's record.",
    needs: ["other"],
    run: async (context) => {
      const name = context.name();
      await context.own([name]);
      const received = await context.lookUp(name, "other");
      expectStatus(received, 200);
      const { record = {} } = received.json as { record?: object };
      expectEqual(
        Object.keys(record).toSorted(),
        ["bucket", "cell_id", "status"],
        "the fields of the record",
      );
      expectFields(received, { record: { cell_id: context.cellId(), status: "ACTIVE" } });
    },
  },
  {
    id: "lookup/unknown-type",
    rules: ["T4"],
    title: "A type that is not declared is refused, and its field is named.",
    run: async (context) => {
      const name = context.name();
      const op = { ...context.op(name), bucket: { type: "NO_TYPE_OF_ANYBODY", value: name } };
      const { received } = await context.begin({ creates: [op] });
      expectRefusal(received, 400, { code: "INVALID_ARGUMENT", field: "creates[0].bucket.type" });
      const body = { buckets: [op.bucket] };
      const looked = await context.send("POST", "/v1/records/lookup", { body });
      expectRefusal(looked, 400, { code: "INVALID_ARGUMENT", field: "buckets[0].type" });
    },
  },
  {
    id: "epoch/grows",
    rules: ["E1"],
    title: "Every later owner of a name has a larger epoch, after a replace and after a destroy and create.",
    run: async (context) => {
      const name = context.name();
      let last = 0;
      const grow = async (what: string): Promise<void> => {
        const { epoch = 0 } = await context.record(name);
        expectThat(epoch > last, `the epoch after ${what} is ${epoch}; the one before was ${last}`);
        last = epoch;
      };
      const by = context.api.has("other") ? "other" : "cell";
      for (let round = 0; round < 3; round += 1) {
        await context.own([name]);
        await grow("a create");
        await context.commit(await context.granted({ replaces: [context.op(name, { subject: "8" })] }));
        await grow("a replace");
        await context.commit(await context.granted({ destroys: [{ bucket: context.bucket(name) }] }));
        await context.own([name], by);
        const { epoch = 0 } = await context.record(name, by);
        expectThat(epoch > last, `the epoch after the next create is ${epoch}; the one before was ${last}`);
        last = epoch;
        await context.commit(await context.granted({ destroys: [{ bucket: context.bucket(name) }] }, by));
      }
    },
  },
  {
    id: "epoch/stays",
    rules: ["E1"],
    title: "The epoch of an owner is the same from the grant on.",
    run: async (context) => {
      const name = context.name();
      const lease = await context.granted({ creates: [context.op(name)] });
      const { epoch: granted } = await context.record(name);
      await context.commit(lease);
      const { epoch: committed } = await context.record(name);
      expectEqual(committed, granted, "the epoch after the commit");
      await context.rollBack(await context.granted({ destroys: [{ bucket: context.bucket(name) }] }));
      expectEqual((await context.record(name)).epoch, granted, "the epoch after a rollback of a destroy");
    },
  },
  {
    id: "history/periods",
    rules: ["K1", "K2"],
    title: "The history of a name has every period, the latest first, with the lease that ended it.",
    needs: ["operator"],
    run: async (context) => {
      const name = context.name();
      await context.own([name]);
      const replacing = await context.granted({ replaces: [context.op(name, { subject: "8" })] });
      await context.commit(replacing);
      const destroying = await context.granted({ destroys: [{ bucket: context.bucket(name) }] });
      await context.commit(destroying);
      await context.rollBack(await context.granted({ creates: [context.op(name)] }));
      await context.own([name]);
      const path = `/v1/admin/history/${context.deployment.types.bucket}/${name}`;
      const received = await context.send("GET", path, { who: "operator" });
      expectStatus(received, 200);
      expectFields(received, { periods: {} });
      const { periods } = received.json as { periods: Pick<SeenRecord, "epoch">[] };
      // An earlier run with the same prefix may have had the name.
      expectEqual(
        periods.slice(0, 3),
        [
          { until: null, ended_by: null, subject: { id: "7" } },
          { ended_by: { lease_uuid: destroying.uuid, kind: "destroy" }, subject: { id: "8" } },
          { ended_by: { lease_uuid: replacing.uuid, kind: "replace" }, subject: { id: "7" } },
        ],
        "the latest periods",
      );
      const epochs = periods.map(({ epoch = 0 }) => epoch);
      expectEqual(
        epochs,
        epochs.toSorted((a, b) => b - a),
        "the epochs of the periods",
      );
    },
  },
];
