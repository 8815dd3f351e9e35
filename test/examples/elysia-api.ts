/**
 * An API on Elysia. Run it with `gatehouse exec -- bun elysia-api.ts`, or with the environment variables of a
 * real server.
 */
import { fromEnv } from '@gatehouse/resource-server'
import { gatehouse } from '@gatehouse/resource-server/elysia'
import { Elysia, t } from 'elysia'

const orders = [{ id: 1, item: 'A book', customer: 'alice' }]

const app = new Elysia()
  .use(gatehouse(fromEnv(process.env.SERVICE_JWKS_URI ? { jwksUri: process.env.SERVICE_JWKS_URI } : {})))
  .get('/health', () => 'ok')
  .get('/hello', ({ claims }) => ({ hello: claims?.name ?? 'stranger' }), { optionalAuth: true })
  .get('/orders', () => orders, { auth: { scopes: ['read'] } })
  .post(
    '/orders',
    ({ body, claims }) => {
      const order = { id: orders.length + 1, item: body.item, customer: claims.name ?? claims.sub }
      orders.push(order)
      return order
    },
    { auth: { scopes: ['write'] }, body: t.Object({ item: t.String() }) },
  )
  .delete(
    '/orders',
    () => {
      orders.length = 0
      return { deleted: true }
    },
    { auth: { roles: ['admin'] } },
  )
  .listen({ hostname: process.env.HOST ?? '127.0.0.1', port: Number(process.env.PORT ?? 3000) })

console.log(`listening on ${app.server?.url}`)
