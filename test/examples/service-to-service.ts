/**
 * A service that calls another service on its own behalf: `ORDERS_URL=http://… gatehouse exec -- bun
 * service-to-service.ts`.
 */
import { createServiceClient } from '@gatehouse/resource-server/client'

const { SERVICE_URL, SERVICE_CLIENT_ID, SERVICE_CLIENT_SECRET, ORDERS_URL } = process.env
if (!SERVICE_URL || !SERVICE_CLIENT_ID || !SERVICE_CLIENT_SECRET || !ORDERS_URL)
  throw new Error('SERVICE_URL, SERVICE_CLIENT_ID, SERVICE_CLIENT_SECRET and ORDERS_URL have to be set')

// One client for the whole service. It caches the token, renews the token in time, and sends one token
// request for all waiting calls.
const orders = createServiceClient({
  issuer: SERVICE_URL,
  clientId: SERVICE_CLIENT_ID,
  clientSecret: SERVICE_CLIENT_SECRET,
  scopes: ['read', 'write'],
})

const created = await orders.fetch(`${ORDERS_URL}/orders`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ item: 'A second book' }),
})
console.log('created', await created.json())

const list = await orders.fetch(`${ORDERS_URL}/orders`)
console.log('there are now', ((await list.json()) as unknown[]).length)
