// The subset on mercurius: one listener on Redis that feeds mercurius' own emitter, rows in memory. JIT=1: compiled.
import { readFileSync } from 'node:fs'
import Fastify from 'fastify'
import Redis from 'ioredis'
import mercurius from 'mercurius'

const { CHANNEL, JIT, PORT, REDIS_URL, ROWS, SDL, TOKEN } = process.env
const expected = `Bearer ${TOKEN}`
const rows = JSON.parse(readFileSync(ROWS, 'utf8'))
const submitted = new Map()
let number = 0

const resolvers = {
  Query: {
    jobs: (_, { first, filter }) => {
      const before = filter?.createdBefore
      return { nodes: rows.filter((row) => before == null || row.createdAt < before).slice(0, first) }
    }
  },
  Mutation: {
    submitJob: (_, { input }) => {
      number += 1
      const id = `job-${String(number).padStart(20, '0')}`
      const job = { ...rows[0], id, name: input.spec.name, state: 'SUBMITTED' }
      submitted.set(id, job)
      return { status: 'CREATED', job }
    }
  },
  Subscription: {
    job: { subscribe: (_, { id }, { pubsub }) => pubsub.subscribe(`job:${id}`) }
  }
}

const app = Fastify()
app.addHook('onRequest', async (request, reply) => {
  if (!request.headers.upgrade && request.headers.authorization !== expected) await reply.code(401).send()
})
app.register(mercurius, {
  schema: readFileSync(SDL, 'utf8'),
  resolvers,
  jit: JIT === '1' ? 1 : 0,
  subscription: {
    onConnect: ({ payload }) => payload?.authorization === expected
  }
})
await app.ready()

const redis = new Redis(REDIS_URL, { retryStrategy: () => 200 })
redis.on('error', () => {})
redis.on('message', (_, message) => {
  const change = JSON.parse(message)
  app.graphql.pubsub.publish({ topic: `job:${change.job.id}`, payload: { job: change } })
})
await redis.subscribe(CHANNEL)
await app.listen({ port: Number(PORT), host: '127.0.0.1' })
