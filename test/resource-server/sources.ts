import * as client from '#src/resource-server/client.ts'
import * as elysia from '#src/resource-server/elysia.ts'
import * as express from '#src/resource-server/express.ts'
import * as fastify from '#src/resource-server/fastify.ts'
import * as hono from '#src/resource-server/hono.ts'
import * as core from '#src/resource-server/index.ts'
import * as logout from '#src/resource-server/logout.ts'
import * as testing from '#src/resource-server/testing.ts'
import type { Sdk } from './targets.ts'

/** The package, loaded from its sources. */
export const sources: Sdk = { core, client, logout, testing, elysia, hono, express, fastify }
