import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { answerTo, authorize, findHandler, type Handlers, type Rules } from './access.ts'
import type { Claims } from './claims.ts'
import { AccessError } from './errors.ts'
import type { LogoutReceiver } from './logout.ts'
import { protection, type ResourceOptions } from './mcp.ts'
import { credentialsOf, readNodeForm } from './node-request.ts'
import type { Verifier } from './verifier.ts'

declare global {
  namespace Express {
    interface Request {
      /**
       * Set by `auth` and `protect`. Undefined when the route is open. Also undefined when the rules of the
       * route are optional and the request has no valid token.
       */
      claims?: Claims | undefined
    }
  }
}

/** Rules of the routes behind the middleware, and replacements for the answers to refused requests. */
export type ExpressOptions = Rules & Handlers<[req: Request, res: Response, next: NextFunction], unknown>

/**
 * Returns middleware for Express 4 and 5 that verifies the token and sets the claims that `getClaims`
 * returns. Use it before the body parser, so that bodies of unauthorized requests are not read.
 *
 * @param options rules of the routes behind the middleware; default: any valid token
 *
 * @example
 * app.get('/orders', auth(verifier, { scopes: ['orders:read'] }), (req, res) => res.json(getClaims(req).sub))
 */
export function auth(verifier: Verifier, options?: ExpressOptions): RequestHandler {
  return (req, res, next) => {
    const refuse = (error: unknown): unknown => {
      if (!(error instanceof AccessError)) throw error
      const handler = findHandler(error, options)
      if (handler) return handler(error, req, res, next)
      const { status, headers, body } = answerTo(error, verifier.issuer)
      return res.status(status).set(headers).json(body)
    }
    authorize(verifier, credentialsOf(req), options)
      .then(claims => {
        req.claims = claims
        next()
      }, refuse)
      .catch(next)
  }
}

/**
 * Returns the claims of a request behind `auth` or `protect`.
 *
 * @throws Error when the route is open, or when its rules are optional and the request has no valid token
 */
export function getClaims(req: Request): Claims {
  if (!req.claims) throw new Error('This request has no claims: guard its route with auth(verifier)')
  return req.claims
}

/**
 * Returns middleware that makes the application a protected resource, such as an MCP server. The middleware
 * serves the metadata document, guards all paths except the open ones, and sets the claims that `getClaims`
 * returns. Use it before the body parser and all routes.
 *
 * @throws ConfigurationError when the verifier has no http(s) `resource`
 *
 * @example
 * app.use(protect(verifier, { scopes: ['tools.read'] }))
 */
export function protect(verifier: Verifier, options?: ResourceOptions): RequestHandler {
  const { check } = protection(verifier, options)
  return (req, res, next) => {
    const path = req.originalUrl.replace(/[?#].*/s, '')
    check({ ...credentialsOf(req), method: req.method, path })
      .then(checked => {
        if (checked?.answer) {
          const { status, headers, body } = checked.answer
          return void res.status(status).set(headers).json(body)
        }
        if (checked) req.claims = checked.claims
        next()
      })
      .catch(next)
  }
}

/**
 * Returns the handler of the application's logout URI. The handler needs no body parser. It also works after
 * `express.urlencoded()`, `express.text()` or `express.raw()` has read the body.
 *
 * @example app.post('/backchannel-logout', logout(receiver))
 */
export function logout(receiver: LogoutReceiver): RequestHandler {
  return (req, res, next) => {
    readNodeForm(req)
      .then(receiver.receive)
      .then(({ status, headers, body }) => void res.writeHead(status, headers).end(body))
      .catch(next)
  }
}
