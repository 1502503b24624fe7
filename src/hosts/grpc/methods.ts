/** The methods that native gRPC offers, from the descriptors that `proto/` generates. */
import type { DescService } from "@bufbuild/protobuf";
import { Health } from "../../coordinator/wire/generated/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../coordinator/wire/generated/grpc/reflection/v1/reflection_pb.js";
import {
  CellService,
  ClaimService,
  ClassifyService,
  HealthService,
} from "../../coordinator/wire/protobuf.ts";

/** The services whose calls go to the coordinator. All of their methods are unary. */
export const forwarded: readonly DescService[] = [ClaimService, ClassifyService, CellService, HealthService];

/** All services of the server, as reflection lists them. */
export const services: readonly DescService[] = [...forwarded, Health, ServerReflection];
