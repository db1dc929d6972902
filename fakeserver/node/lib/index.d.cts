/** What a function of a race is told beside the URL. */
export interface RaceContext {
  /** Which of the four it is, for one function that stands for several. */
  role: 'setup' | 'a' | 'b' | 'after'
  /** Aborted when the sweep lets this run die. There is nothing that has to be done then: its connections are cut. */
  signal: AbortSignal
}

/**
 * One side of a race: opens its own clients with the URL that it is given, does its work and closes them.
 *
 * What it returns is part of the outcome that is compared, and so is the name and the message of the error that it throws.
 */
export type RaceFunction = (url: string, context: RaceContext) => unknown

export type RaceKind = 'isolation' | 'crash' | 'lost-reply' | 'expiry' | 'restart'

export interface RaceOptions {
  /** Run once; the keys that it leaves are what every run begins with. */
  setup?: RaceFunction
  /** Runs at the end of every run: a recovery, or a reader whose result belongs to the outcome. */
  after?: RaceFunction
  /** What is tried; everything by default. */
  only?: RaceKind | RaceKind[]
  /** Whether keys are compared with their values (the default) or by types and sizes alone. */
  compare?: 'content' | 'shape'
  /** Whether what the functions return and throw is compared (the default). */
  compareOutput?: boolean
  /** Keys that are not compared, as glob patterns. */
  ignore?: string | string[]
  /** Fields of hashes that are not compared, as `key-pattern:field-pattern`. */
  ignoreFields?: string | string[]
  /** Resolve with the report even if there are findings: `false`. */
  check?: boolean
  /** Milliseconds: a key that a dead program leaves with a shorter time to live heals by itself. 60,000 by default. */
  healsWithin?: number
  /** Milliseconds that one run may take. 30,000 by default. */
  timeLimit?: number
  /** Milliseconds of silence after which a function is taken to wait for the other one. 1,000 by default. */
  patience?: number
  /** Seed of the server's random choices. */
  seed?: number | bigint
  /** The time of every run, in milliseconds since the epoch. */
  clock?: number | Date
  /** Runs a single schedule, as findings name them: `isolation:a2`. */
  replay?: string
  /** URL of an empty Redis server on which findings are run again. */
  confirm?: string
  /** File for the report as JSON. */
  json?: string
  /** File for the report as a page. */
  html?: string
  /** Ends the sweep when aborted, as by the time-out of a test. */
  signal?: AbortSignal
}

export interface ProgramOutcome {
  /** 0 if the function returned, 1 if it threw. */
  status: number | 'killed' | 'time limit'
  output: string
}

export interface KeyState {
  db: number
  key: string
  type: string
  value: string
  /** Whether it has a time to live. */
  ttl: boolean
}

export interface Outcome {
  a: ProgramOutcome | null
  b: ProgramOutcome | null
  after: ProgramOutcome | null
  keys: KeyState[]
  labels: string[]
}

export interface OrderedOutcome {
  order: string
  outcome: Outcome
}

export interface Step {
  role: 'a' | 'b' | 'after' | 'server'
  connection: number
  command: string
  reply: string
  access: 'read' | 'write' | 'local' | 'event'
  point: number | null
  note: string | null
}

export interface Finding {
  kind: RaceKind
  title: string
  /** What `replay` takes. */
  schedule: string
  /** Further schedules that show the same. */
  also: string[]
  steps: Step[]
  outcome: Outcome
  /** What serial orders give. */
  expected: OrderedOutcome[]
  differences: { at: string; got: string; expected: string[] }[]
  /** Places in `steps`: who read, who wrote in between, who overwrote. */
  cause: { key: string; read: number; written: number; overwritten: number } | null
  repair: { rule: string; text: string } | null
  replay: string
  confirmed: { server: string; same: boolean } | null
}

export interface Report {
  format: 1
  server: string
  /** What exactly was tried. */
  claim: string
  programs: Record<'a' | 'b' | 'setup' | 'after', string[] | null>
  runs: Record<string, number>
  skipped: Record<string, number>
  seconds: number
  left_out: string[]
  notes: string[]
  serial: OrderedOutcome[]
  findings: Finding[]
  /** All of it, to be read. */
  text: string
}

/** What `race` rejects with when something was found; its message is the report as text. */
export class RaceError extends Error {
  constructor(report: Report)
  readonly report: Report
}

export interface Race {
  /**
   * Runs `a` and `b` in every order with one preemption, cuts connections, lets keys expire and the server restart between any two
   * commands, and asks whether some serial order gives the same.
   *
   * Rejects with a {@link RaceError} if there are findings, and with another error if the sweep could not be run.
   *
   * ```js
   * await race((url) => redeem(url, 'token'), (url) => redeem(url, 'token'), { setup: (url) => issue(url, 'token') })
   * ```
   */
  (a: RaceFunction, b: RaceFunction, options?: RaceOptions): Promise<Report>
  /** The same for one function: what does it leave if it dies, or has to try again? */
  (a: RaceFunction, options?: RaceOptions): Promise<Report>
  /** The URL of the run in which it is asked for. */
  readonly url: string
  /** A stand-in for a client that the code under test keeps for good: in each run it is another one. */
  client<Client extends object>(factory: (url: string) => Client): Client
}

export const race: Race

export interface ServerOptions {
  /** 0, the default, takes a free one. */
  port?: number
  /** Address to listen on. 127.0.0.1 by default. */
  host?: string
  password?: string
  /** Seed of random choices and hash tables. */
  seed?: number | bigint
  /** Lets the clock stand at this time. */
  clock?: number | Date
  /** Lets clients call DEBUG. */
  enableDebugCommand?: boolean
}

/** What goes wrong, once: with the next command of that name, or the `nth` from now on; or with every one. */
export type Fault = ({ nth?: number; always?: false } | { nth?: undefined; always: boolean }) &
  (
    | { /** It is not run, and answered so. */ error: string }
    | { /** The connection is closed before the command is run, or before it is answered. */ drop: 'before' | 'after' }
    | { /** Milliseconds by which the reply is late. */ delay: number }
  )

export interface Clock {
  /** Lets it stand, at a time in milliseconds since the epoch or where it is. Like the others gives the time. */
  freeze(at?: number | Date): Promise<number>
  /** Moves it on: keys expire and waiting clients time out before this resolves. */
  advance(milliseconds: number): Promise<number>
  /** Lets it go with the machine's. */
  real(): Promise<number>
  now(): Promise<number>
}

/** What the server answers: errors reject. */
export type Reply = string | number | null | Reply[]

export interface Server extends AsyncDisposable {
  readonly url: string
  readonly host: string
  readonly port: number
  readonly clock: Clock
  /** Deletes all keys. */
  flush(): Promise<void>
  /** Makes the server what it was at its start, and closes all connections. */
  reset(): Promise<void>
  /** `server.fail('SET', { nth: 2, drop: 'after' })`; the command is `*` for any, and `CONFIG|GET` for a subcommand. */
  fail(command: string, fault: Fault): Promise<void>
  /** Forgets what is still to fail; gives how many faults there were. */
  clearFaults(): Promise<number>
  /** All keys with their values and times to live, in the same order each time. */
  dump(): Promise<string>
  /** Runs a command without a client: `server.command('GET', 'key')`. */
  command(...words: (string | number | Uint8Array)[]): Promise<Reply>
  stop(): Promise<void>
}

/** Starts a server as a child process, which ends with this one. */
export function startServer(options?: ServerOptions): Promise<Server>

type Hook = (work: () => Promise<void>) => unknown

/** `beforeAll` and `afterAll` of vitest and Jest, `before` and `after` of node:test. */
export type Hooks = { beforeEach: Hook } & ({ beforeAll: Hook; afterAll: Hook } | { before: Hook; after: Hook })

/**
 * One server for a file of tests: started before the first, without keys, faults and changes of its clock before each, stopped after
 * the last. Without hooks those among the globals are taken.
 */
export function useServer(hooks?: Hooks, options?: ServerOptions): Server
