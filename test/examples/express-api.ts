/**
 * The same API as in elysia-api.ts, on Express. Run it with `gatehouse exec -- bun express-api.ts`, or with
 * the environment variables of a real server.
 */
import { fromEnv } from '@gatehouse/resource-server'
import { auth, getClaims } from '@gatehouse/resource-server/express'
import express from 'express'

const orders = [{ id: 1, item: 'A book', customer: 'alice' }]
const verifier = fromEnv()
const app = express()

app.get('/health', (_req, res) => {
  res.send('ok')
})
app.get('/hello', auth(verifier, { optional: true }), (req, res) => {
  res.json({ hello: req.claims?.name ?? 'stranger' })
})
app.get('/orders', auth(verifier, { scopes: ['read'] }), (_req, res) => {
  res.json(orders)
})
app.post('/orders', auth(verifier, { scopes: ['write'] }), express.json(), (req, res) => {
  const { name, sub } = getClaims(req)
  const order = { id: orders.length + 1, item: String(req.body.item), customer: name ?? sub }
  orders.push(order)
  res.json(order)
})
app.delete('/orders', auth(verifier, { roles: ['admin'] }), (_req, res) => {
  orders.length = 0
  res.json({ deleted: true })
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const address = server.address()
  console.log(`listening on http://127.0.0.1:${typeof address === 'object' ? address?.port : address}/`)
})
