import { z } from 'zod'
import type { AdminRoute } from '#src/http/guard.ts'
import { ADMIN_PREFIX } from './routes.ts'

type Json = Record<string, unknown>

const errorSchema: Json = {
  type: 'object',
  required: ['error', 'error_description', 'status', 'request_id'],
  properties: {
    error: { type: 'string' },
    error_description: { type: 'string' },
    status: { type: 'integer' },
    request_id: { type: 'string', description: 'Also in the header x-request-id and in the log.' },
    details: {
      type: 'array',
      description: 'One entry per refused field (422).',
      items: {
        type: 'object',
        required: ['field', 'code', 'message'],
        properties: { field: { type: 'string' }, code: { type: 'string' }, message: { type: 'string' } },
      },
    },
  },
}

const meanings: Record<number, string> = {
  200: 'Done.',
  201: 'Created.',
  204: 'Done; no body.',
  400: 'The body is not JSON, or the cursor is invalid.',
  401: 'The bearer token is missing or not valid.',
  403: 'The caller lacks the permission.',
  404: 'It does not exist, or belongs to an organization that the caller may not see.',
  409: 'It conflicts with what is stored.',
  408: 'The body was not complete within 10 seconds.',
  413: 'The body is larger than 1 MiB.',
  415: 'The body is not application/json.',
  422: 'A field or parameter is not valid.',
  429: 'Too many requests; see Retry-After.',
  503: 'Overloaded or unable to write; see Retry-After.',
}

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): Json => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    target: 'draft-2020-12',
  })
  return rest
}

const statusesOf = (route: AdminRoute): number[] => [
  400,
  401,
  403,
  ...(route.errors ?? []),
  ...(route.body ? [408, 413, 415] : []),
  422,
  503,
]

const operation = (route: AdminRoute): Json => {
  const pathNames = [...route.path.matchAll(/:(\w+)/g)].map(match => match[1] ?? '')
  const query = route.query ? jsonSchema(route.query, 'input') : {}
  const required = new Set((query.required as string[] | undefined) ?? [])
  const parameters = [
    ...pathNames.map(name => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    ...Object.entries((query.properties as Json | undefined) ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      required: required.has(name),
      schema,
    })),
  ]
  return {
    operationId: `${route.method.toLowerCase()}${route.path.replace(/[/_:]+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: [route.path.split('/')[1]],
    summary: route.summary,
    description: `Needs the permission \`${route.permission}\`.`,
    'x-permission': route.permission,
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: jsonSchema(route.body, 'input') } },
      },
    }),
    responses: {
      [route.status]: {
        description: meanings[route.status],
        ...(route.answer && {
          content: { 'application/json': { schema: jsonSchema(route.answer, 'output') } },
        }),
      },
      ...Object.fromEntries(
        statusesOf(route).map(status => {
          const description = (status === 409 && route.conflict) || meanings[status]
          return [status, { description, content: errorContent }]
        }),
      ),
    },
  }
}

const errorContent = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }

/**
 * Builds the OpenAPI 3.1 document from the route objects that serve the admin API:
 * https://spec.openapis.org/oas/v3.1.1
 */
export const openApiDocument = (routes: AdminRoute[], url: string, version: string): Json => {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = ADMIN_PREFIX + route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Gatehouse admin API',
      version,
      description: 'Users, organizations, roles, groups, OAuth clients, sessions and the audit log.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      schemas: { Error: errorSchema },
    },
  }
}
