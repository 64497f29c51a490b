// The subset on gqlgen: one listener on Redis, a channel per subscriber, rows in memory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/redis/go-redis/v9"
	"github.com/vektah/gqlparser/v2/ast"

	"starforge/bench/gqlgen/graph"
	"starforge/bench/gqlgen/graph/model"
)

const queued = 64 // changes that wait for one subscriber, after which the listener waits for it

type root struct {
	rows        []*model.Job
	lock        sync.RWMutex
	subscribers map[string]map[chan *model.JobChange]struct{}
	submitted   map[string]*model.Job
}

func (r *root) Query() graph.QueryResolver               { return (*query)(r) }
func (r *root) Mutation() graph.MutationResolver         { return (*mutation)(r) }
func (r *root) Subscription() graph.SubscriptionResolver { return (*subscription)(r) }

type (
	query        root
	mutation     root
	subscription root
)

func (q *query) Jobs(_ context.Context, first int, filter *model.JobFilter) (*model.JobConnection, error) {
	found := make([]*model.Job, 0, first)
	for _, row := range q.rows {
		if len(found) == first {
			break
		}
		if filter == nil || filter.CreatedBefore == nil || row.CreatedAt < *filter.CreatedBefore {
			found = append(found, row)
		}
	}
	return &model.JobConnection{Nodes: found}, nil
}

func (m *mutation) SubmitJob(_ context.Context, input model.SubmitJobInput) (*model.SubmitJobPayload, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	job := *m.rows[0]
	job.ID, job.Name, job.State = fmt.Sprintf("job-%020d", len(m.submitted)+1), input.Spec.Name, model.JobStateSubmitted
	m.submitted[job.ID] = &job
	return &model.SubmitJobPayload{Status: model.SubmitStatusCreated, Job: &job}, nil
}

func (s *subscription) Job(ctx context.Context, id string, _ *string) (<-chan *model.JobChange, error) {
	changes := make(chan *model.JobChange, queued)
	s.lock.Lock()
	if s.subscribers[id] == nil {
		s.subscribers[id] = map[chan *model.JobChange]struct{}{}
	}
	s.subscribers[id][changes] = struct{}{}
	s.lock.Unlock()
	go func() {
		<-ctx.Done()
		s.lock.Lock()
		delete(s.subscribers[id], changes)
		s.lock.Unlock()
		close(changes)
	}()
	return changes, nil
}

func (r *root) listen(client *redis.Client, channel string) {
	for message := range client.Subscribe(context.Background(), channel).Channel() {
		var change model.JobChange
		if err := json.Unmarshal([]byte(message.Payload), &change); err != nil {
			log.Print(err)
			continue
		}
		r.lock.RLock()
		for changes := range r.subscribers[change.Job.ID] {
			changes <- &change
		}
		r.lock.RUnlock()
	}
}

func guarded(next http.Handler, expected string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" && r.Header.Get("Authorization") != expected {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	expected := "Bearer " + os.Getenv("TOKEN")
	all := &root{subscribers: map[string]map[chan *model.JobChange]struct{}{}, submitted: map[string]*model.Job{}}
	text, err := os.ReadFile(os.Getenv("ROWS"))
	must(err)
	must(json.Unmarshal(text, &all.rows))
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	must(err)
	go all.listen(redis.NewClient(options), os.Getenv("CHANNEL"))

	server := handler.New(graph.NewExecutableSchema(graph.Config{Resolvers: all}))
	server.AddTransport(transport.Websocket{
		PingPongInterval: 12 * time.Second,
		InitFunc: func(ctx context.Context, given transport.InitPayload) (context.Context, *transport.InitPayload, error) {
			if given.Authorization() != expected && given.GetString("authorization") != expected {
				return nil, nil, errors.New("who are you?")
			}
			return ctx, nil, nil
		},
	})
	server.AddTransport(transport.POST{})
	server.SetQueryCache(lru.New[*ast.QueryDocument](1000))
	http.Handle("/graphql", guarded(server, expected))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
