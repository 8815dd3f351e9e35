/**
 * Serves the application with its issuer and client id. Run it with `gatehouse exec -- bun
 * browser-app/serve.ts`.
 */
const file = (name: string) => Bun.file(`${import.meta.dir}/${name}`)

const server = Bun.serve({
  hostname: 'localhost',
  port: Number(process.env.PORT ?? 3000),
  routes: {
    '/config.json': Response.json({
      issuer: process.env.SERVICE_URL,
      client_id: process.env.BROWSER_CLIENT_ID ?? 'dev-web',
    }),
    '/app.js': () => new Response(file('app.js'), { headers: { 'content-type': 'text/javascript' } }),
    '/*': () => new Response(file('index.html'), { headers: { 'content-type': 'text/html' } }),
  },
})

console.log(`listening on ${server.url}`)
