import type { AdminRoute } from '#src/http/guard.ts'
import { taggedObject } from '#src/http/preconditions.ts'
import { FRESH } from '#src/protocol/oauth/next-step.ts'
import { componentsOf, type Json } from './components.ts'
import { about, headerTexts, pathParameters, refusals, successes, tags } from './descriptions.ts'
import { ADMIN_PREFIX } from './routes.ts'

type Components = ReturnType<typeof componentsOf>

const ref = (kind: string, name: string): Json => ({ $ref: `#/components/${kind}/${name}` })

const statusesOf = (route: AdminRoute, isConditional: boolean): number[] => [
  400,
  401,
  403,
  ...(route.errors ?? []),
  ...(route.body ? [408] : []),
  ...(isConditional ? [412] : []),
  ...(route.body ? [413, 415] : []),
  422,
  503,
]

/** Parameters that the lists share. */
const listParameters = ['limit', 'cursor', 'order']

const queryParameters = ({ properties = {}, required = [] }: Json = {}): Json[] =>
  Object.entries(properties as Record<string, Json>).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: (required as string[]).includes(name),
    description,
    // A query field that is an object is sent as several parameters, one for each of its properties, such as
    // `attribute[department]`: https://spec.openapis.org/oas/v3.1.1#style-values
    ...(schema.type === 'object'
      ? {
          style: 'deepObject',
          explode: true,
          schema: { type: 'object', additionalProperties: { type: 'string' } },
        }
      : { schema }),
  }))

const operation = (route: AdminRoute, { bodies, answers, queries }: Components, isTagged: boolean): Json => {
  const isConditional = isTagged && route.method !== 'GET'
  const { id, path, permission } = route
  const parameters = [
    ...[...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ref('parameters', name)),
    ...queryParameters(queries[id]).map(each =>
      listParameters.includes(String(each.name)) ? ref('parameters', String(each.name)) : each,
    ),
  ]
  if (isConditional) parameters.push(ref('parameters', 'if-match'))
  const body = bodies.get(id)
  const answer = answers.get(id)
  return {
    operationId: id,
    tags: [path.split('/')[1]],
    summary: route.summary,
    description: `Needs the permission \`${permission}\`${route.also ? ` and \`${route.also}\`` : ''}${route.instance_only ? ', and a caller of the default organization' : ''}.${route.fresh ? ` In the console a user must have authenticated in the last ${FRESH} seconds; in other applications only if \`settings.step_up\` requires it (RFC 9470).` : ''}`,
    'x-permission': permission,
    ...(route.fresh && { 'x-max-authentication-age': FRESH }),
    security: [{ oauth2: route.also ? [permission, route.also] : [permission] }, { bearer: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: body } }),
    responses: {
      [route.status]: {
        description: successes[route.status],
        headers: {
          'x-request-id': ref('headers', 'x-request-id'),
          ...(isTagged && answer && { etag: ref('headers', 'etag') }),
        },
        ...(answer && { content: answer }),
      },
      ...Object.fromEntries(
        statusesOf(route, isConditional).map(status => [
          status,
          {
            ...ref('responses', refusals[status]?.name ?? ''),
            ...(status === 409 && route.conflict && { description: route.conflict }),
          },
        ]),
      ),
    },
  }
}

/** Components other than the schemas and examples of the routes. */
const shared = (routes: AdminRoute[], { answers, queries }: Components, url: string): Json => {
  const list = queryParameters(
    Object.values(queries).find(({ properties }) => 'cursor' in Object(properties)),
  )
  const scopes = Map.groupBy(routes, ({ permission }) => permission)
  return {
    parameters: Object.fromEntries([
      ...Object.entries(pathParameters).map(([name, description]) => [
        name,
        { name, in: 'path', required: true, description, schema: { type: 'string' } },
      ]),
      [
        'if-match',
        {
          name: 'if-match',
          in: 'header',
          required: false,
          description: 'Entity tag of the object as it was read (RFC 9110 section 13.1.1).',
          schema: { type: 'string' },
        },
      ],
      ...list.filter(({ name }) => listParameters.includes(String(name))).map(each => [each.name, each]),
    ]),
    headers: Object.fromEntries(
      Object.entries(headerTexts).map(([name, description]) => [
        name,
        { description, schema: { type: 'string' } },
      ]),
    ),
    responses: Object.fromEntries(
      Object.values(refusals).map(({ name, description, header }) => [
        name,
        {
          description,
          headers: Object.fromEntries(
            ['x-request-id', header].flatMap(each => (each ? [[each, ref('headers', each)]] : [])),
          ),
          content: answers.get('error'),
        },
      ]),
    ),
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'An access token.' },
      oauth2: {
        type: 'oauth2',
        description:
          'The scopes of a token are permissions. A call needs a permission that the scopes name and that the user or client of the token has.',
        flows: Object.fromEntries(
          ['clientCredentials', 'authorizationCode'].map(flow => [
            flow,
            {
              ...(flow === 'authorizationCode' && { authorizationUrl: `${url}/oauth/authorize` }),
              tokenUrl: `${url}/oauth/token`,
              scopes: Object.fromEntries(
                [...scopes].map(([scope, allowed]) => [scope, allowed.map(({ id }) => id).join(', ')]),
              ),
            },
          ]),
        ),
      },
    },
  }
}

/**
 * Builds the OpenAPI 3.1 document from the route objects that serve the admin API:
 * https://spec.openapis.org/oas/v3.1.1
 */
export const openApiDocument = (routes: AdminRoute[], url: string, version: string): Json => {
  const components = componentsOf(routes)
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = ADMIN_PREFIX + route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: operation(route, components, taggedObject(routes, route) !== undefined),
    }
  }
  const { schemas, examples } = components
  return {
    openapi: '3.1.1',
    info: {
      title: 'Gatehouse admin API',
      version,
      description: about,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url }],
    security: [{ bearer: [] }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: { schemas, examples, ...shared(routes, components, url) },
  }
}
