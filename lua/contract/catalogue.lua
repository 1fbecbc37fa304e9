-- Made by `./dev docs` from qmodel/contract/operations and qmodel/contract/settings.py. Change those.

local catalogue = {}

local NONE = {} -- the list that stands for one that was left out

catalogue.most = 1000
catalogue.time = {kind = 'whole', low = 0, high = 89999999999999}
catalogue.request = {kind = 'id', most = 64}
catalogue.id = {kind = 'id', most = 128}
catalogue.request_name = {kind = 'label', most = 64}
catalogue.size = {kind = 'whole', low = 1, high = 100000}

local kinds = {
  {kind = 'name', most = 128},
  {kind = 'id', most = 128},
  {kind = 'text', most = 1048576},
  {kind = 'whole', low = -2147483648, high = 2147483647},
  {kind = 'whole', low = 0, high = 316224000000},
  {kind = 'whole', low = 0, high = 1000000},
  {kind = 'list', item = {kind = 'name', most = 128}, least = 0, optional = true},
  {kind = 'list', item = {kind = 'edge'}, least = 0, optional = true},
  {kind = 'flag'},
  {kind = 'whole', low = 1, high = 316224000000},
  {kind = 'whole', low = 1, high = 1000},
  {kind = 'list', item = {kind = 'id', most = 128}, least = 0, most = 8, optional = true},
  {kind = 'whole', low = 1, high = 1000000},
  {kind = 'whole', low = 1, high = 100},
  {kind = 'choice', words = {pending = true, window = true, debounce = true, again = true}},
  {kind = 'whole', low = 0, high = 89999999999999},
  {kind = 'id', most = 64},
  {kind = 'operations', of = 'put', least = 1},
  {kind = 'whole', low = 0, high = 1000},
  {kind = 'list', item = {kind = 'name', most = 128}, least = 1},
  {kind = 'digits'},
  {kind = 'operations', of = 'complete', least = 1},
  {kind = 'name', most = 160},
  {kind = 'text', most = 65536},
  {kind = 'list', item = {kind = 'id', most = 128}, least = 1},
  {kind = 'text', most = 1024},
  {kind = 'choice', words = {scheduled = true, depends = true, waiting = true, throttled = true, running = true, stalled = true, complete = true, failed = true}},
  {kind = 'text', most = 256},
  {kind = 'choice', words = {complete = true, failed = true}},
  {kind = 'list', item = {kind = 'edge'}, least = 1},
  {kind = 'list', item = {kind = 'awaited'}, least = 0, optional = true},
  {kind = 'whole', low = 0, high = 1000000000},
  {kind = 'list', item = {kind = 'id', most = 128}, least = 0, optional = true},
  {kind = 'label', most = 64},
  {kind = 'choice', words = {open = true, closed = true, canceling = true, done = true, canceled = true}},
  {kind = 'id', most = 112},
  {kind = 'choice', words = {interval = true, cron = true, after = true}},
  {kind = 'list', item = {kind = 'whole', low = 0, high = 89999999999999}, least = 0, optional = true},
  {kind = 'choice', words = {all = true, one = true, none = true}},
  {kind = 'choice', words = {allow = true, skip = true}},
  {kind = 'name', most = 134},
  {kind = 'whole', low = 1, high = 10000},
  {kind = 'whole', low = 1, high = 86400000},
  {kind = 'name', most = 64},
  {kind = 'whole', low = 0, high = 8999999999999999},
  {kind = 'whole', low = 1, high = 8999999999999999},
  {kind = 'whole', low = -99999999999999, high = 99999999999999},
}

catalogue.operations = {
  put = {
    reads = false, memo = false, asks = true, cascades = true, lists = {'tags', 'depends', 'throttles'},
    decode = function(operation, args, at, last)
      if last < at + 3 then args = arguments.only(args, at, last) end
      local queue, jid, klass, data = args[at], args[at + 1], args[at + 2], args[at + 3]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not (arguments.names[klass] or arguments.is_name(klass, 128)) then arguments.refuse(operation, 'klass') end
      if not (data and #data <= 1048576) then arguments.refuse(operation, 'data') end
      local op = {queue = queue, jid = jid, klass = klass, data = data, delay_ms = 0, request = ''}
      if last >= at + 4 then arguments.named(operation, catalogue.operations.put, op, args, at + 4, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      jid = kinds[2],
      klass = kinds[1],
      data = kinds[3],
      priority = kinds[4],
      delay_ms = kinds[5],
      retries = kinds[6],
      tags = kinds[7],
      depends = kinds[8],
      lifo = kinds[9],
      lease_ms = kinds[10],
      timeout_ms = kinds[10],
      ttl_ms = kinds[10],
      dead_queue = kinds[1],
      keep_complete_ms = kinds[5],
      keep_failed_ms = kinds[5],
      keep_newest = kinds[11],
      throttles = kinds[12],
      cost = kinds[13],
      ordered = kinds[1],
      max_lapses = kinds[6],
      retry_delay_ms = kinds[10],
      retry_delay_max_ms = kinds[10],
      fair_key = kinds[1],
      fair_weight = kinds[14],
      unique = kinds[2],
      unique_mode = kinds[15],
      unique_ms = kinds[10],
      unique_max_ms = kinds[10],
      at = kinds[16],
      request = kinds[17],
    },
  },
  put_many = {
    reads = false, memo = false, asks = true, cascades = true, lists = {'jobs'},
    decode = function(operation, args, at, last)
      local op = {request = ''}
      arguments.named(operation, catalogue.operations.put_many, op, args, at + 0, last)
      return op
    end,
    arguments = {
      jobs = kinds[18],
      request = kinds[17],
    },
  },
  put_new = {
    reads = false, memo = true, asks = true, cascades = true, lists = {'jobs'},
    decode = function(operation, args, at, last)
      local op = {request = ''}
      arguments.named(operation, catalogue.operations.put_new, op, args, at + 0, last)
      return op
    end,
    arguments = {
      jobs = kinds[18],
      request = kinds[17],
    },
  },
  pop = {
    reads = false, memo = false, asks = true, cascades = true, lists = {}, jobs = true,
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local queue, worker = args[at], args[at + 1]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      if not (arguments.names[worker] or arguments.is_name(worker, 128)) then arguments.refuse(operation, 'worker') end
      local op = {queue = queue, worker = worker, count = 1, wait = false, request = '', qless = false}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.pop, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      worker = kinds[1],
      count = kinds[11],
      wait = kinds[9],
      request = kinds[17],
      qless = kinds[9],
      tries = kinds[19],
    },
  },
  pop_any = {
    reads = false, memo = false, asks = true, cascades = true, lists = {'queues'}, jobs = true,
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local worker = args[at]
      if not (arguments.names[worker] or arguments.is_name(worker, 128)) then arguments.refuse(operation, 'worker') end
      local op = {worker = worker, count = 1, wait = false, request = ''}
      arguments.named(operation, catalogue.operations.pop_any, op, args, at + 1, last)
      return op
    end,
    arguments = {
      queues = kinds[20],
      worker = kinds[1],
      count = kinds[11],
      wait = kinds[9],
      request = kinds[17],
    },
  },
  peek = {
    reads = true, memo = false, asks = false, cascades = false, lists = {}, jobs = true,
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, count = 1}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.peek, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      count = kinds[11],
    },
  },
  complete = {
    reads = false, memo = false, asks = false, cascades = true, lists = {'depends'},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, token = args[at], args[at + 1]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not arguments.is_digits(token) then arguments.refuse(operation, 'token') end
      local op = {jid = jid, token = token, result = '', delay_ms = 0, depends = NONE}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.complete, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      token = kinds[21],
      result = kinds[3],
      data = kinds[3],
      next = kinds[1],
      delay_ms = kinds[5],
      depends = kinds[8],
    },
  },
  complete_many = {
    reads = false, memo = false, asks = false, cascades = true, lists = {'jobs'},
    decode = function(operation, args, at, last)
      local op = {}
      arguments.named(operation, catalogue.operations.complete_many, op, args, at + 0, last)
      return op
    end,
    arguments = {
      jobs = kinds[22],
    },
  },
  complete_and_pop = {
    reads = false, memo = false, asks = true, cascades = true, lists = {'depends'}, follow = true,
    decode = function(operation, args, at, last)
      if last < at + 3 then args = arguments.only(args, at, last) end
      local jid, token, queue, worker = args[at], args[at + 1], args[at + 2], args[at + 3]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not arguments.is_digits(token) then arguments.refuse(operation, 'token') end
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      if not (arguments.names[worker] or arguments.is_name(worker, 128)) then arguments.refuse(operation, 'worker') end
      local op = {jid = jid, token = token, queue = queue, worker = worker, count = 1, wait = false, result = '', delay_ms = 0, depends = NONE, request = ''}
      if last >= at + 4 then arguments.named(operation, catalogue.operations.complete_and_pop, op, args, at + 4, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      token = kinds[21],
      queue = kinds[1],
      worker = kinds[1],
      count = kinds[11],
      wait = kinds[9],
      result = kinds[3],
      data = kinds[3],
      next = kinds[1],
      delay_ms = kinds[5],
      depends = kinds[8],
      request = kinds[17],
    },
  },
  fail = {
    reads = false, memo = false, asks = false, cascades = true, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 3 then args = arguments.only(args, at, last) end
      local jid, token, group, message = args[at], args[at + 1], args[at + 2], args[at + 3]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not arguments.is_digits(token) then arguments.refuse(operation, 'token') end
      if not (arguments.names[group] or arguments.is_name(group, 160)) then arguments.refuse(operation, 'group') end
      if not (message and #message <= 65536) then arguments.refuse(operation, 'message') end
      local op = {jid = jid, token = token, group = group, message = message, qless = false}
      if last >= at + 4 then arguments.named(operation, catalogue.operations.fail, op, args, at + 4, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      token = kinds[21],
      group = kinds[23],
      message = kinds[24],
      data = kinds[3],
      qless = kinds[9],
    },
  },
  retry = {
    reads = false, memo = false, asks = false, cascades = true, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, token = args[at], args[at + 1]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not arguments.is_digits(token) then arguments.refuse(operation, 'token') end
      local op = {jid = jid, token = token, delay_ms = 0, message = '', qless = false}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.retry, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      token = kinds[21],
      delay_ms = kinds[5],
      group = kinds[23],
      message = kinds[24],
      qless = kinds[9],
    },
  },
  release = {
    reads = false, memo = false, asks = false, cascades = true, lists = {'depends'},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, token = args[at], args[at + 1]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not arguments.is_digits(token) then arguments.refuse(operation, 'token') end
      local op = {jid = jid, token = token, delay_ms = 0, depends = NONE}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.release, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      token = kinds[21],
      delay_ms = kinds[5],
      data = kinds[3],
      depends = kinds[8],
    },
  },
  heartbeat = {
    reads = false, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, token = args[at], args[at + 1]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not arguments.is_digits(token) then arguments.refuse(operation, 'token') end
      local op = {jid = jid, token = token}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.heartbeat, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      token = kinds[21],
      data = kinds[3],
    },
  },
  timeout = {
    reads = false, memo = true, asks = true, cascades = true, lists = {'jids'},
    decode = function(operation, args, at, last)
      local op = {request = '', qless = false}
      arguments.named(operation, catalogue.operations.timeout, op, args, at + 0, last)
      return op
    end,
    arguments = {
      jids = kinds[25],
      request = kinds[17],
      qless = kinds[9],
    },
  },
  revoke = {
    reads = false, memo = true, asks = true, cascades = true, lists = {'jids'},
    decode = function(operation, args, at, last)
      local op = {request = ''}
      arguments.named(operation, catalogue.operations.revoke, op, args, at + 0, last)
      return op
    end,
    arguments = {
      jids = kinds[25],
      request = kinds[17],
    },
  },
  update = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, data = args[at], args[at + 1]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not (data and #data <= 1048576) then arguments.refuse(operation, 'data') end
      local op = {jid = jid, data = data, request = ''}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.update, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      data = kinds[3],
      request = kinds[17],
    },
  },
  priority = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, priority = args[at], args[at + 1]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      priority = arguments.whole(priority, -2147483648, 2147483647)
      if priority == nil then arguments.refuse(operation, 'priority') end
      local op = {jid = jid, priority = priority, request = '', first = false}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.priority, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      priority = kinds[4],
      request = kinds[17],
      first = kinds[9],
    },
  },
  delay = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, delay_ms = args[at], args[at + 1]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      delay_ms = arguments.whole(delay_ms, 0, 316224000000)
      if delay_ms == nil then arguments.refuse(operation, 'delay_ms') end
      local op = {jid = jid, delay_ms = delay_ms, request = '', qless = false}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.delay, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      delay_ms = kinds[5],
      request = kinds[17],
      qless = kinds[9],
    },
  },
  promote = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.promote, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      request = kinds[17],
    },
  },
  log = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, message = args[at], args[at + 1]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not (message and #message <= 1024) then arguments.refuse(operation, 'message') end
      local op = {jid = jid, message = message, request = ''}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.log, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      message = kinds[26],
      request = kinds[17],
    },
  },
  progress = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 2 then args = arguments.only(args, at, last) end
      local jid, token, progress = args[at], args[at + 1], args[at + 2]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      if not arguments.is_digits(token) then arguments.refuse(operation, 'token') end
      if not (progress and #progress <= 1024) then arguments.refuse(operation, 'progress') end
      local op = {jid = jid, token = token, progress = progress, request = ''}
      if last >= at + 3 then arguments.named(operation, catalogue.operations.progress, op, args, at + 3, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      token = kinds[21],
      progress = kinds[26],
      request = kinds[17],
    },
  },
  cancel = {
    reads = false, memo = true, asks = true, cascades = true, lists = {'jids'},
    decode = function(operation, args, at, last)
      local op = {cascade = false, complete = false, request = ''}
      arguments.named(operation, catalogue.operations.cancel, op, args, at + 0, last)
      return op
    end,
    arguments = {
      jids = kinds[25],
      cascade = kinds[9],
      complete = kinds[9],
      request = kinds[17],
    },
  },
  drain = {
    reads = false, memo = true, asks = true, cascades = true, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, count = 1000, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.drain, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      count = kinds[11],
      request = kinds[17],
    },
  },
  cancel_many = {
    reads = false, memo = true, asks = true, cascades = true, lists = {},
    decode = function(operation, args, at, last)
      local op = {cursor = '', count = 1000, preview = false, request = ''}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.cancel_many, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      state = kinds[27],
      klass = kinds[1],
      tag = kinds[1],
      worker = kinds[1],
      group = kinds[23],
      cursor = kinds[28],
      count = kinds[11],
      preview = kinds[9],
      request = kinds[17],
    },
  },
  clean = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local state = args[at]
      state = state and arguments.accept(kinds[29], state)
      if state == nil then arguments.refuse(operation, 'state') end
      local op = {state = state, older_ms = 0, cursor = '', count = 1000, preview = false, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.clean, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      state = kinds[29],
      older_ms = kinds[5],
      queue = kinds[1],
      klass = kinds[1],
      tag = kinds[1],
      group = kinds[23],
      cursor = kinds[28],
      count = kinds[11],
      preview = kinds[9],
      request = kinds[17],
    },
  },
  obliterate = {
    reads = false, memo = true, asks = true, cascades = true, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, force = false, cursor = '', count = 1000, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.obliterate, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      force = kinds[9],
      cursor = kinds[28],
      count = kinds[11],
      request = kinds[17],
    },
  },
  depends_on = {
    reads = false, memo = true, asks = true, cascades = true, lists = {'dependencies'},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      arguments.named(operation, catalogue.operations.depends_on, op, args, at + 1, last)
      return op
    end,
    arguments = {
      jid = kinds[2],
      dependencies = kinds[30],
      request = kinds[17],
    },
  },
  depends_off = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'dependencies'},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, dependencies = NONE, all = false, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.depends_off, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      dependencies = kinds[31],
      all = kinds[9],
      request = kinds[17],
    },
  },
  results = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, offset = 0, count = 1000}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.results, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  unique_get = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local unique = args[at]
      if not arguments.is_id(unique, 128) then arguments.refuse(operation, 'unique') end
      local op = {unique = unique}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.unique_get, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      unique = kinds[2],
    },
  },
  unique_release = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local unique = args[at]
      if not arguments.is_id(unique, 128) then arguments.refuse(operation, 'unique') end
      local op = {unique = unique, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.unique_release, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      unique = kinds[2],
      request = kinds[17],
    },
  },
  tag_add = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'tags'},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      arguments.named(operation, catalogue.operations.tag_add, op, args, at + 1, last)
      return op
    end,
    arguments = {
      jid = kinds[2],
      tags = kinds[20],
      request = kinds[17],
    },
  },
  tag_remove = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'tags'},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      arguments.named(operation, catalogue.operations.tag_remove, op, args, at + 1, last)
      return op
    end,
    arguments = {
      jid = kinds[2],
      tags = kinds[20],
      request = kinds[17],
    },
  },
  tagged = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local tag = args[at]
      if not (arguments.names[tag] or arguments.is_name(tag, 128)) then arguments.refuse(operation, 'tag') end
      local op = {tag = tag, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.tagged, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      tag = kinds[1],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  top_tags = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.top_tags, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      offset = kinds[32],
      count = kinds[11],
    },
  },
  track = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.track, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      request = kinds[17],
    },
  },
  untrack = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.untrack, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      request = kinds[17],
    },
  },
  tracked = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.tracked, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      offset = kinds[32],
      count = kinds[11],
    },
  },
  failed_groups = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.failed_groups, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      offset = kinds[32],
      count = kinds[11],
    },
  },
  failed = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local group = args[at]
      if not (arguments.names[group] or arguments.is_name(group, 160)) then arguments.refuse(operation, 'group') end
      local op = {group = group, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.failed, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      group = kinds[23],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  replay = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.replay, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
      request = kinds[17],
    },
  },
  retry_many = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'jids'},
    decode = function(operation, args, at, last)
      local op = {cursor = '', count = 1000, preview = false, request = ''}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.retry_many, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      klass = kinds[1],
      tag = kinds[1],
      group = kinds[23],
      cursor = kinds[28],
      count = kinds[11],
      preview = kinds[9],
      jids = kinds[33],
      to = kinds[1],
      request = kinds[17],
    },
  },
  request_open = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 2 then args = arguments.only(args, at, last) end
      local id, queue, limit = args[at], args[at + 1], args[at + 2]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      limit = arguments.whole(limit, 1, 1000)
      if limit == nil then arguments.refuse(operation, 'limit') end
      local op = {id = id, queue = queue, limit = limit, priority = 0, request = '', fail_fast = false, data = '', keep_places = false}
      if last >= at + 3 then arguments.named(operation, catalogue.operations.request_open, op, args, at + 3, last) end
      return op
    end,
    arguments = {
      id = kinds[34],
      queue = kinds[1],
      limit = kinds[11],
      priority = kinds[4],
      request = kinds[17],
      deadline_ms = kinds[10],
      fail_fast = kinds[9],
      lease_ms = kinds[10],
      data = kinds[3],
      keep_places = kinds[9],
    },
  },
  request_add = {
    reads = false, memo = true, asks = true, cascades = true, lists = {'jobs'},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local id = args[at]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      local op = {id = id, request = ''}
      arguments.named(operation, catalogue.operations.request_add, op, args, at + 1, last)
      return op
    end,
    arguments = {
      id = kinds[34],
      jobs = kinds[18],
      request = kinds[17],
    },
  },
  request_touch = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local id = args[at]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      local op = {id = id, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.request_touch, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      id = kinds[34],
      request = kinds[17],
    },
  },
  request_close = {
    reads = false, memo = true, asks = true, cascades = true, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local id = args[at]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      local op = {id = id, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.request_close, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      id = kinds[34],
      request = kinds[17],
    },
  },
  request_put = {
    reads = false, memo = true, asks = true, cascades = true, lists = {'jobs'},
    decode = function(operation, args, at, last)
      if last < at + 2 then args = arguments.only(args, at, last) end
      local id, queue, limit = args[at], args[at + 1], args[at + 2]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      limit = arguments.whole(limit, 1, 1000)
      if limit == nil then arguments.refuse(operation, 'limit') end
      local op = {id = id, queue = queue, limit = limit, priority = 0, request = '', fail_fast = false, data = '', keep_places = false}
      arguments.named(operation, catalogue.operations.request_put, op, args, at + 3, last)
      return op
    end,
    arguments = {
      id = kinds[34],
      queue = kinds[1],
      limit = kinds[11],
      jobs = kinds[18],
      priority = kinds[4],
      request = kinds[17],
      deadline_ms = kinds[10],
      fail_fast = kinds[9],
      data = kinds[3],
      keep_places = kinds[9],
    },
  },
  request_get = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local id = args[at]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      local op = {id = id}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.request_get, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      id = kinds[34],
    },
  },
  request_jobs = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local id = args[at]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      local op = {id = id, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.request_jobs, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      id = kinds[34],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  requests = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {state = 'open', offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.requests, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      state = kinds[35],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  request_tune = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local id = args[at]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      local op = {id = id, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.request_tune, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      id = kinds[34],
      priority = kinds[4],
      limit = kinds[11],
      request = kinds[17],
    },
  },
  request_cancel = {
    reads = false, memo = true, asks = true, cascades = true, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local id = args[at]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      local op = {id = id, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.request_cancel, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      id = kinds[34],
      request = kinds[17],
    },
  },
  request_forget = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local id = args[at]
      id = id and arguments.accept(kinds[34], id)
      if id == nil then arguments.refuse(operation, 'id') end
      local op = {id = id, request = '', delete_jobs = false}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.request_forget, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      id = kinds[34],
      request = kinds[17],
      delete_jobs = kinds[9],
    },
  },
  recur = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'tags', 'due_at', 'throttles'},
    decode = function(operation, args, at, last)
      if last < at + 4 then args = arguments.only(args, at, last) end
      local queue, jid, klass, data, interval_ms = args[at], args[at + 1], args[at + 2], args[at + 3], args[at + 4]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      if not (arguments.names[klass] or arguments.is_name(klass, 128)) then arguments.refuse(operation, 'klass') end
      if not (data and #data <= 1048576) then arguments.refuse(operation, 'data') end
      interval_ms = arguments.whole(interval_ms, 0, 316224000000)
      if interval_ms == nil then arguments.refuse(operation, 'interval_ms') end
      local op = {queue = queue, jid = jid, klass = klass, data = data, interval_ms = interval_ms, offset_ms = 0, priority = 0, retries = 5, tags = NONE, backlog = 0, kind = 'interval', cron = '', due_at = NONE, start_at = 0, end_at = 0, limit = 0, missed = 'all', catchup_ms = 60000, overlap = 'allow', restart = false, runs = 0, request = '', throttles = NONE}
      if last >= at + 5 then arguments.named(operation, catalogue.operations.recur, op, args, at + 5, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      jid = kinds[36],
      klass = kinds[1],
      data = kinds[3],
      interval_ms = kinds[5],
      offset_ms = kinds[5],
      priority = kinds[4],
      retries = kinds[6],
      tags = kinds[7],
      backlog = kinds[6],
      kind = kinds[37],
      cron = kinds[26],
      due_at = kinds[38],
      start_at = kinds[16],
      end_at = kinds[16],
      limit = kinds[32],
      missed = kinds[39],
      catchup_ms = kinds[5],
      overlap = kinds[40],
      restart = kinds[9],
      runs = kinds[32],
      request = kinds[17],
      throttles = kinds[12],
      fair_key = kinds[1],
      fair_weight = kinds[14],
    },
  },
  unrecur = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.unrecur, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[36],
      request = kinds[17],
    },
  },
  recur_get = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.recur_get, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[36],
    },
  },
  recur_update = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'throttles'},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.recur_update, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[36],
      queue = kinds[1],
      klass = kinds[1],
      data = kinds[3],
      interval_ms = kinds[10],
      priority = kinds[4],
      retries = kinds[6],
      backlog = kinds[6],
      request = kinds[17],
      throttles = kinds[12],
      fair_key = kinds[1],
      fair_weight = kinds[14],
    },
  },
  recur_tag = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'tags'},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      arguments.named(operation, catalogue.operations.recur_tag, op, args, at + 1, last)
      return op
    end,
    arguments = {
      jid = kinds[36],
      tags = kinds[20],
      request = kinds[17],
    },
  },
  recur_untag = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'tags'},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      arguments.named(operation, catalogue.operations.recur_untag, op, args, at + 1, last)
      return op
    end,
    arguments = {
      jid = kinds[36],
      tags = kinds[20],
      request = kinds[17],
    },
  },
  recur_pause = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.recur_pause, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[36],
      request = kinds[17],
    },
  },
  recur_unpause = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.recur_unpause, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[36],
      request = kinds[17],
    },
  },
  recur_now = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.recur_now, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[36],
      request = kinds[17],
    },
  },
  recur_advance = {
    reads = false, memo = false, asks = false, cascades = false, lists = {'due_at'},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local jid, after = args[at], args[at + 1]
      if not arguments.is_id(jid, 112) then arguments.refuse(operation, 'jid') end
      after = arguments.whole(after, 0, 89999999999999)
      if after == nil then arguments.refuse(operation, 'after') end
      local op = {jid = jid, after = after, due_at = NONE}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.recur_advance, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      jid = kinds[36],
      after = kinds[16],
      due_at = kinds[38],
    },
  },
  recurring_unset = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {ahead_ms = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.recurring_unset, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      ahead_ms = kinds[5],
      count = kinds[11],
    },
  },
  recurring = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.recurring, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  fire = {
    reads = false, memo = true, asks = true, cascades = true, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, count = 1000, request = '', qless = false}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.fire, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      count = kinds[11],
      request = kinds[17],
      qless = kinds[9],
    },
  },
  throttle_set = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local throttle = args[at]
      if not (arguments.names[throttle] or arguments.is_name(throttle, 134)) then arguments.refuse(operation, 'throttle') end
      local op = {throttle = throttle, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.throttle_set, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      throttle = kinds[41],
      concurrency = kinds[13],
      rate = kinds[42],
      rate_ms = kinds[10],
      capacity = kinds[13],
      refill = kinds[13],
      refill_ms = kinds[43],
      request = kinds[17],
    },
  },
  throttle_unset = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local throttle = args[at]
      if not (arguments.names[throttle] or arguments.is_name(throttle, 134)) then arguments.refuse(operation, 'throttle') end
      local op = {throttle = throttle, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.throttle_unset, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      throttle = kinds[41],
      request = kinds[17],
      jid = kinds[2],
    },
  },
  throttle_get = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local throttle = args[at]
      if not (arguments.names[throttle] or arguments.is_name(throttle, 134)) then arguments.refuse(operation, 'throttle') end
      local op = {throttle = throttle}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.throttle_get, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      throttle = kinds[41],
    },
  },
  throttles = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.throttles, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      offset = kinds[32],
      count = kinds[11],
    },
  },
  throttles_used = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {match = '*', cursor = '', count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.throttles_used, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      match = kinds[41],
      cursor = kinds[28],
      count = kinds[11],
    },
  },
  publish = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local subject, data = args[at], args[at + 1]
      if not (arguments.names[subject] or arguments.is_name(subject, 128)) then arguments.refuse(operation, 'subject') end
      if not (data and #data <= 1048576) then arguments.refuse(operation, 'data') end
      local op = {subject = subject, data = data, delay_ms = 0, request = ''}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.publish, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      subject = kinds[1],
      data = kinds[3],
      delay_ms = kinds[5],
      request = kinds[17],
    },
  },
  subscribe = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'patterns', 'tags'},
    decode = function(operation, args, at, last)
      if last < at + 2 then args = arguments.only(args, at, last) end
      local subscription, queue, klass = args[at], args[at + 1], args[at + 2]
      if not arguments.is_id(subscription, 112) then arguments.refuse(operation, 'subscription') end
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      if not (arguments.names[klass] or arguments.is_name(klass, 128)) then arguments.refuse(operation, 'klass') end
      local op = {subscription = subscription, queue = queue, klass = klass, priority = 0, delay_ms = 0, retries = 5, tags = NONE, lifo = false, count = 1000, request = ''}
      arguments.named(operation, catalogue.operations.subscribe, op, args, at + 3, last)
      return op
    end,
    arguments = {
      subscription = kinds[36],
      patterns = kinds[20],
      queue = kinds[1],
      klass = kinds[1],
      priority = kinds[4],
      delay_ms = kinds[5],
      retries = kinds[6],
      tags = kinds[7],
      lifo = kinds[9],
      lease_ms = kinds[10],
      timeout_ms = kinds[10],
      ttl_ms = kinds[10],
      dead_queue = kinds[1],
      ordered = kinds[1],
      after = kinds[16],
      since = kinds[16],
      count = kinds[11],
      request = kinds[17],
      fair_key = kinds[1],
      fair_weight = kinds[14],
    },
  },
  catch_up = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local subscription = args[at]
      if not arguments.is_id(subscription, 112) then arguments.refuse(operation, 'subscription') end
      local op = {subscription = subscription, count = 1000, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.catch_up, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      subscription = kinds[36],
      count = kinds[11],
      request = kinds[17],
    },
  },
  unsubscribe = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local subscription = args[at]
      if not arguments.is_id(subscription, 112) then arguments.refuse(operation, 'subscription') end
      local op = {subscription = subscription, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.unsubscribe, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      subscription = kinds[36],
      request = kinds[17],
    },
  },
  subscription_get = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local subscription = args[at]
      if not arguments.is_id(subscription, 112) then arguments.refuse(operation, 'subscription') end
      local op = {subscription = subscription}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.subscription_get, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      subscription = kinds[36],
    },
  },
  subscriptions = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.subscriptions, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      offset = kinds[32],
      count = kinds[11],
    },
  },
  messages = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {after = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.messages, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      after = kinds[16],
      count = kinds[11],
    },
  },
  trim = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {count = 1000, request = ''}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.trim, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      count = kinds[11],
      request = kinds[17],
    },
  },
  why = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.why, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
    },
  },
  get = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local jid = args[at]
      if not arguments.is_id(jid, 128) then arguments.refuse(operation, 'jid') end
      local op = {jid = jid}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.get, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      jid = kinds[2],
    },
  },
  multiget = {
    reads = true, memo = false, asks = false, cascades = false, lists = {'jids'}, jobs = true,
    decode = function(operation, args, at, last)
      local op = {}
      arguments.named(operation, catalogue.operations.multiget, op, args, at + 0, last)
      return op
    end,
    arguments = {
      jids = kinds[25],
    },
  },
  search = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {cursor = '', count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.search, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      state = kinds[27],
      klass = kinds[1],
      tag = kinds[1],
      worker = kinds[1],
      group = kinds[23],
      cursor = kinds[28],
      count = kinds[11],
      klass_like = kinds[1],
      jid_like = kinds[1],
      text = kinds[44],
    },
  },
  waiting = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.waiting, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  scheduled = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.scheduled, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  depending = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.depending, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  throttled = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.throttled, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  running = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.running, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  stalled = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, offset = 0, count = 25}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.stalled, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      offset = kinds[32],
      count = kinds[11],
    },
  },
  completed = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.completed, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      offset = kinds[32],
      count = kinds[11],
    },
  },
  queues = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.queues, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      offset = kinds[32],
      count = kinds[11],
    },
  },
  queue = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.queue, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
    },
  },
  length = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.length, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
    },
  },
  workers = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {offset = 0, count = 25}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.workers, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      offset = kinds[32],
      count = kinds[11],
    },
  },
  worker = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local worker = args[at]
      if not (arguments.names[worker] or arguments.is_name(worker, 128)) then arguments.refuse(operation, 'worker') end
      local op = {worker = worker}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.worker, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      worker = kinds[1],
    },
  },
  stats = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.stats, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      at = kinds[16],
      tag = kinds[1],
      worker = kinds[1],
    },
  },
  metrics = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local queue = args[at]
      if not (arguments.names[queue] or arguments.is_name(queue, 128)) then arguments.refuse(operation, 'queue') end
      local op = {queue = queue, count = 60}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.metrics, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      queue = kinds[1],
      at = kinds[16],
      count = kinds[11],
    },
  },
  events = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {after = 0, count = 100}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.events, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      after = kinds[16],
      count = kinds[11],
      epoch = kinds[45],
    },
  },
  newest = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.newest, op, args, at + 0, last) end
      return op
    end,
    arguments = {
    },
  },
  journal = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {after = 0, count = 100}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.journal, op, args, at + 0, last) end
      return op
    end,
    arguments = {
      after = kinds[16],
      count = kinds[11],
      epoch = kinds[45],
    },
  },
  pause = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'queues'},
    decode = function(operation, args, at, last)
      local op = {reason = 'by hand', for_ms = 0, request = ''}
      arguments.named(operation, catalogue.operations.pause, op, args, at + 0, last)
      return op
    end,
    arguments = {
      queues = kinds[20],
      reason = kinds[1],
      for_ms = kinds[5],
      request = kinds[17],
    },
  },
  unpause = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'queues'},
    decode = function(operation, args, at, last)
      local op = {request = ''}
      arguments.named(operation, catalogue.operations.unpause, op, args, at + 0, last)
      return op
    end,
    arguments = {
      queues = kinds[20],
      reason = kinds[1],
      request = kinds[17],
    },
  },
  forget = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'queues'},
    decode = function(operation, args, at, last)
      local op = {request = ''}
      arguments.named(operation, catalogue.operations.forget, op, args, at + 0, last)
      return op
    end,
    arguments = {
      queues = kinds[20],
      request = kinds[17],
    },
  },
  deregister = {
    reads = false, memo = true, asks = true, cascades = false, lists = {'workers'},
    decode = function(operation, args, at, last)
      local op = {request = ''}
      arguments.named(operation, catalogue.operations.deregister, op, args, at + 0, last)
      return op
    end,
    arguments = {
      workers = kinds[20],
      request = kinds[17],
    },
  },
  config = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      local op = {}
      if last >= at + 0 then arguments.named(operation, catalogue.operations.config, op, args, at + 0, last) end
      return op
    end,
    arguments = {
    },
  },
  config_get = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local option = args[at]
      if not (arguments.names[option] or arguments.is_name(option, 160)) then arguments.refuse(operation, 'option') end
      local op = {option = option}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.config_get, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      option = kinds[23],
    },
  },
  config_set = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local option, value = args[at], args[at + 1]
      if not (arguments.names[option] or arguments.is_name(option, 160)) then arguments.refuse(operation, 'option') end
      value = arguments.whole(value, 0, 89999999999999)
      if value == nil then arguments.refuse(operation, 'value') end
      local op = {option = option, value = value, request = ''}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.config_set, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      option = kinds[23],
      value = kinds[16],
      request = kinds[17],
    },
  },
  config_unset = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local option = args[at]
      if not (arguments.names[option] or arguments.is_name(option, 160)) then arguments.refuse(operation, 'option') end
      local op = {option = option, request = ''}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.config_unset, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      option = kinds[23],
      request = kinds[17],
    },
  },
  begin_epoch = {
    reads = false, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local epoch = args[at]
      epoch = arguments.whole(epoch, 1, 8999999999999999)
      if epoch == nil then arguments.refuse(operation, 'epoch') end
      local op = {epoch = epoch}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.begin_epoch, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      epoch = kinds[46],
    },
  },
  metadata_get = {
    reads = true, memo = false, asks = false, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at then args = arguments.only(args, at, last) end
      local klass = args[at]
      if not (arguments.names[klass] or arguments.is_name(klass, 128)) then arguments.refuse(operation, 'klass') end
      local op = {klass = klass}
      if last >= at + 1 then arguments.named(operation, catalogue.operations.metadata_get, op, args, at + 1, last) end
      return op
    end,
    arguments = {
      klass = kinds[1],
    },
  },
  metadata_set = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 2 then args = arguments.only(args, at, last) end
      local klass, key, value = args[at], args[at + 1], args[at + 2]
      if not (arguments.names[klass] or arguments.is_name(klass, 128)) then arguments.refuse(operation, 'klass') end
      if not (arguments.names[key] or arguments.is_name(key, 128)) then arguments.refuse(operation, 'key') end
      if not (value and #value <= 1024) then arguments.refuse(operation, 'value') end
      local op = {klass = klass, key = key, value = value, request = ''}
      if last >= at + 3 then arguments.named(operation, catalogue.operations.metadata_set, op, args, at + 3, last) end
      return op
    end,
    arguments = {
      klass = kinds[1],
      key = kinds[1],
      value = kinds[26],
      request = kinds[17],
    },
  },
  metadata_increment = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local klass, key = args[at], args[at + 1]
      if not (arguments.names[klass] or arguments.is_name(klass, 128)) then arguments.refuse(operation, 'klass') end
      if not (arguments.names[key] or arguments.is_name(key, 128)) then arguments.refuse(operation, 'key') end
      local op = {klass = klass, key = key, by = 1, request = ''}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.metadata_increment, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      klass = kinds[1],
      key = kinds[1],
      by = kinds[47],
      request = kinds[17],
    },
  },
  metadata_unset = {
    reads = false, memo = true, asks = true, cascades = false, lists = {},
    decode = function(operation, args, at, last)
      if last < at + 1 then args = arguments.only(args, at, last) end
      local klass, key = args[at], args[at + 1]
      if not (arguments.names[klass] or arguments.is_name(klass, 128)) then arguments.refuse(operation, 'klass') end
      if not (arguments.names[key] or arguments.is_name(key, 128)) then arguments.refuse(operation, 'key') end
      local op = {klass = klass, key = key, request = ''}
      if last >= at + 2 then arguments.named(operation, catalogue.operations.metadata_unset, op, args, at + 2, last) end
      return op
    end,
    arguments = {
      klass = kinds[1],
      key = kinds[1],
      request = kinds[17],
    },
  },
}

catalogue.options = {
  ['heartbeat'] = {default = 60000, low = 0, high = 31622400000},
  ['grace-period'] = {default = 10000, low = 0, high = 31622400000},
  ['fair'] = {default = 0, low = 0, high = 1},
  ['aging'] = {default = 0, low = 0, high = 31622400000},
  ['jobs-history'] = {default = 604800000, low = 0, high = 316224000000},
  ['jobs-history-count'] = {default = 50000, low = 0, high = 1000000000},
  ['failed-history'] = {default = 0, low = 0, high = 316224000000},
  ['failed-history-count'] = {default = 0, low = 0, high = 1000000000},
  ['requests-history'] = {default = 604800000, low = 0, high = 316224000000},
  ['stats-history'] = {default = 30, low = 0, high = 3660},
  ['histogram-history'] = {default = 7, low = 0, high = 3660},
  ['stats-tags'] = {default = 100, low = 0, high = 200},
  ['stats-workers'] = {default = 0, low = 0, high = 200},
  ['metrics-history'] = {default = 1440, low = 0, high = 10080},
  ['messages-history'] = {default = 604800000, low = 0, high = 316224000000},
  ['messages-history-count'] = {default = 1000, low = 0, high = 1000000},
  ['max-job-history'] = {default = 100, low = 4, high = 1000},
  ['max-worker-age'] = {default = 86400000, low = 0, high = 316224000000},
  ['max-events'] = {default = 10000, low = 1, high = 10000000},
  ['journal'] = {default = 0, low = 0, high = 1},
  ['max-journal'] = {default = 100000, low = 0, high = 10000000},
}

catalogue.option_names = {
  'heartbeat',
  'grace-period',
  'fair',
  'aging',
  'jobs-history',
  'jobs-history-count',
  'failed-history',
  'failed-history-count',
  'requests-history',
  'stats-history',
  'histogram-history',
  'stats-tags',
  'stats-workers',
  'metrics-history',
  'messages-history',
  'messages-history-count',
  'max-job-history',
  'max-worker-age',
  'max-events',
  'journal',
  'max-journal',
}
